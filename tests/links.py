#!/usr/bin/env python3
"""What trainings on links say, against embeddings and formulas.

Usage: tests/links.py STARLING FOLDER DATASET
       tests/links.py make users|users-one-way|loops DATASET

A model is trained a little, its embeddings are those of `starling predict --logits`, and its decoder is in the checkpoint. Scores of the
links and of the other pairs of validation and test, which are files, give all metrics by their definitions: those of `starling evaluate`
must be as near as rounding. The loss of training is a mean over drawn targets: with many of them, and weights that stay, it is near the
mean over all targets, and another one in each epoch.
"""
import array, itertools, json, math, os, random, struct, subprocess, sys

OPTIONS = "--task links --model sage --hidden 6 --optimizer sgd --lr 0.5 --epochs 12 --patience 0 --keep last --seed 3 --quiet".split()
METRICS = ("loss", "roc-auc", "mrr", "hits@10", "hits@20", "hits@50", "hits@100")
DRAWN = 400


def fail(words):
    sys.exit(f"links.py: {words}")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        fail(f"{' '.join(command)}: {done.stderr}")


def read_npy(path):
    """Rows of a matrix, or numbers of a vector."""
    with open(path, "rb") as file:
        head = file.read(10)
        head = eval(file.read(struct.unpack("<H", head[8:])[0]))
        numbers = array.array({"<f4": "f", "<i4": "i", "<i8": "q"}[head["descr"]], file.read())
    if len(head["shape"]) == 1:
        return numbers
    width = head["shape"][1]
    return [numbers[r * width:(r + 1) * width] for r in range(head["shape"][0])]


def write_npy(path, kind, shape, numbers):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + array.array({"<f4": "f", "<i4": "i", "<i8": "q"}[kind], numbers).tobytes())


def make(kind, dataset):
    """Users before items, whose edges go both ways or to the items alone; or loops, and several relations between the same vertices."""
    r, users, vertices, relations = random.Random(kind), 150, 240, 3
    if kind == "loops":
        pairs = [(r.randrange(vertices), r.randrange(vertices)) for _ in range(900)] + [(v, v) for v in range(0, vertices, 3)]
        pairs += pairs[::4]
    else:
        pairs = list({(u, users + int((vertices - users) * r.random() ** 2)) for u in range(users) for _ in range(1 + u % 9)})
        pairs += [(v, u) for u, v in pairs] if kind == "users" else []
    rows = [sorted(u for u, target in pairs if target == v) for v in range(vertices)]
    os.makedirs(dataset)
    write_npy(f"{dataset}/indptr.npy", "<i8", (vertices + 1,), [0, *itertools.accumulate(map(len, rows))])
    write_npy(f"{dataset}/indices.npy", "<i4", (len(pairs),), [u for row in rows for u in row])
    write_npy(f"{dataset}/features.npy", "<f4", (vertices, 5), [r.gauss(0, 1) for _ in range(vertices * 5)])
    if kind == "loops":
        write_npy(f"{dataset}/edge_types.npy", "<i4", (len(pairs),), [sum(row[j] == row[k] for j in range(k)) % relations for row in rows for k in range(len(row))])
    with open(f"{dataset}/meta.json", "w") as file:
        json.dump({"name": kind}, file)


def decoder_of(path, decoder):
    """The parameters: those of the last layer."""
    with open(path, "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    if decoder == "dot":
        return None
    name = max((name for name in head if name.endswith(".weight")), key=lambda name: int(name.split(".")[1]))
    return array.array("f", data[slice(*head[name]["data_offsets"])])


def score(decoder, w, x, y):
    if decoder == "dot":
        return sum(a * b for a, b in zip(x, y))
    if decoder == "distmult":
        return sum(c * a * b for c, a, b in zip(w, x, y))
    h = len(x) // 2
    return w[h] + sum(c * max(a + b, 0) for c, a, b in zip(w, x[:h], y[h:]))


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def value(metric, loss, links, others):
    """OGB's hits@K and mrr, the area under the ROC curve, and the losses of codelets/link_loss.h."""
    each = len(others) // len(links)
    own = [others[k * each:(k + 1) * each] for k in range(len(links))]
    if metric == "loss":
        if loss == "bce":
            return mean(softplus(-s) for s in links) + mean(softplus(n) for n in others)
        return mean(mean(softplus(n - s) for n in mine) for s, mine in zip(links, own))
    if metric == "roc-auc":
        return mean((s > n) + (s == n) / 2 for s in links for n in others)
    if metric == "mrr":
        return mean(1 / (1 + mean((sum(n > s for n in mine), sum(n >= s for n in mine)))) for s, mine in zip(links, own))
    most = int(metric.split("@")[1])
    return 1.0 if len(others) < most else mean(s > sorted(others)[-most] for s in links)


def check_metrics(starling, folder, dataset, decoder, loss, z, w):
    path = os.path.join(folder, "scores.json")
    scores = {}
    for split in ("val", "test"):
        scores[split] = [[score(decoder, w, z[u], z[v]) for u, v in read_npy(f"{dataset}/{split}_{what}.npy")] for what in ("links", "negatives")]
        if len(scores[split][1]) != 3 * len(scores[split][0]):
            fail(f"{split}: other than three negatives for each link")
    for metric in METRICS:
        run(starling, "evaluate", os.path.join(folder, "links.ck"), dataset, "--metric", metric, "--json", path, "--quiet")
        with open(path) as file:
            got = json.load(file)["scores"][metric]
        for split, (links, others) in scores.items():
            want = value(metric, loss, links, others)
            # Rounding turns the order of two scores now and then.
            if not abs(got[split] - want) <= (1e-5 if metric == "loss" else 2e-2 / len(links) + 1e-5) * max(want, 1):
                fail(f"{dataset}, {decoder}, {loss}: {metric} of {split} is {got[split]}, expected {want}")


def training_links(dataset):
    """Links (source, target) of the adjacency, in one direction; of an undirected graph, each edge in both."""
    indptr, indices = read_npy(f"{dataset}/indptr.npy"), read_npy(f"{dataset}/indices.npy")
    return sorted({(u, v) for v in range(len(indptr) - 1) for u in indices[indptr[v]:indptr[v + 1]] if u != v})


def first_target_of(links):
    """Users come before items: a target is an item."""
    first, second = max(map(min, links)), min(map(max, links))
    return second if first < second else 0


def check_training(starling, folder, dataset, decoder, loss, z, w):
    """Go on with weights that stay. Links of an undirected graph have a random direction, so that its negatives' sources are drawn, too."""
    log, checkpoint = os.path.join(folder, "go.log"), os.path.join(folder, "links.ck")
    if os.path.exists(log):
        os.remove(log)
    run(starling, "train", dataset, *OPTIONS, "--decoder", decoder, "--loss", loss, "--resume", checkpoint, "--epochs", "14", "--lr", "1e-12",
        "--momentum", "0", "--negatives", str(DRAWN), "--log", log)
    with open(log) as file:
        losses = [event["loss"] for event in map(json.loads, file) if event["event"] == "epoch"]
    links = training_links(dataset)
    vertices = range(first_target_of(links), len(z))
    links = [(u, v) for u, v in links if v in vertices]
    of_links = {link: score(decoder, w, z[link[0]], z[link[1]]) for link in links}
    to_all = {u: [score(decoder, w, z[u], z[v]) for v in vertices] for u in {u for u, _ in links}}
    if loss == "bce":
        by_source = {u: mean(map(softplus, to_all[u])) for u in to_all}
        want = mean(softplus(-of_links[link]) + by_source[link[0]] for link in links)
    else:
        want = mean(mean(softplus(n - of_links[link]) for n in to_all[link[0]]) for link in links)
    directed = any((v, u) not in of_links for u, v in links)
    for got in losses:
        if not abs(got - want) <= (4e-3 if directed else 1e-2) * want:
            fail(f"{dataset}, {decoder}, {loss}: the loss of training is {got}, expected about {want}")
    if len(losses) != 2 or losses[0] == losses[1]:
        fail(f"{dataset}, {decoder}, {loss}: losses {losses}: negatives are not drawn anew")
    print(f"{os.path.basename(dataset)}, {decoder}, {loss}: {len(links)} links, loss {losses[0]:.5f}, over all targets {want:.5f}")


def main(starling, folder, dataset):
    stored, logits = os.path.join(folder, "of-links"), os.path.join(folder, "z.npy")
    run(starling, "convert", dataset, stored, "--split-edges", "60/20/20", "--eval-negatives", "3", "--quiet")
    for decoder, loss in (("dot", "bce"), ("distmult", "bpr"), ("mlp", "bce")):
        checkpoint = os.path.join(folder, "links.ck")
        run(starling, "train", stored, *OPTIONS, "--decoder", decoder, "--loss", loss, "--tiles", "7", "--order", "random", "--checkpoint", checkpoint)
        run(starling, "predict", checkpoint, stored, "--logits", logits, "--quiet")
        z, w = read_npy(logits), decoder_of(checkpoint, decoder)
        check_metrics(starling, folder, stored, decoder, loss, z, w)
        check_training(starling, folder, stored, decoder, loss, z, w)


if __name__ == "__main__":
    make(*sys.argv[2:]) if sys.argv[1] == "make" else main(*sys.argv[1:])
