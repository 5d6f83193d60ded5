#!/usr/bin/env python3
"""Gradients of whole models against differences of the loss.

Usage: tests/slopes.py STARLING FOLDER

A step of SGD with momentum leaves the gradient g in a checkpoint, so that the weights before the step
are known. The loss at these weights plus and minus a step along g differs by the step times |g|. So it
is along a direction that is drawn, which shows entries that g lacks. All tensors move at once, each so
far that its part of the difference is as large. `starling evaluate` says the loss; that of links, whose negatives are drawn anew in each
epoch, is in the log of a run that goes on for one epoch. Fails where a gradient is wrong, or where a model has no gradient that can be seen.
"""
import array, itertools, json, math, os, random, shutil, struct, subprocess, sys

MODELS = ("gcn", "gcn --residual linear --classifier linear --norm-layers row", "sage", "sage --aggregator sum --lr 1e-3", "gat --heads 3 --hidden 5",
          "gat --heads 2 --hidden 4 --out-heads 3 --norm-layers row", "gatv2 --heads 3 --hidden 5", "gatv2 --heads 2 --hidden 8 --out-heads 3 --layers 3",
          "gatv2 --heads 2 --hidden 6 --residual linear --classifier linear", "transformer --heads 3 --hidden 5", "transformer --heads 2 --hidden 4 --layers 3 --norm-layers row",
          "transformer --heads 2 --hidden 8 --residual none --jump sum", "gcn --layers 3 --jump max", "gin --lr 1e-3", "resgcn --hidden 8", "resgcn --hidden 8 --aggregator mean", "jknet --hidden 8", "appnp --hops 2 --hidden 8", "sgc")
EPOCHS, LEARNING_RATE, STEP, CHANGE, TOLERANCE, LEAST = 15, 0.1, 1e-3, 1e-4, 5e-2, 5e-3
DRAWN_TOLERANCE = 0.35
# Sparse features, which most vertices lack: whole tiles have none.
SPARSE_MODELS = ("gcn --tiles 9", "sage --tiles 9", "gat --tiles 9 --heads 2 --hidden 4", "gatv2 --tiles 20 --heads 2 --hidden 4 --feature-form csr --order none --lr 1",
                 "transformer --tiles 20 --heads 2 --hidden 4 --feature-form csr --order none")
FEATURES = 6
# Edges with features, some one-way.
EDGE_MODELS = ("gat --heads 3 --hidden 5", "gat --heads 2 --hidden 4 --out-heads 3 --layers 3 --tiles 9", "gat --heads 2 --hidden 4 --residual linear --classifier linear",
               "gine --hidden 8 --lr 1e-3", "gine --hidden 8 --layers 3 --encoder none --lr 1e-3 --tiles 9", "gine --hidden 8 --norm-layers row --no-bias --lr 1e-2",
               "gatv2 --heads 3 --hidden 5", "gatv2 --heads 2 --hidden 4 --out-heads 3 --layers 3 --tiles 9", "gatv2 --heads 2 --hidden 6 --residual linear --classifier linear",
               "transformer --heads 3 --hidden 5", "transformer --heads 2 --hidden 4 --layers 3 --tiles 9 --norm-layers row",
               "transformer --heads 2 --hidden 8 --residual none --jump sum")
EDGE_FEATURES = 3
# Edges with relations; some vertices have several edges between them.
RELATION_MODELS = ("rgcn --hidden 8", "rgcn --hidden 6 --bases 3 --layers 3 --tiles 9", "rgcn --hidden 5 --layers 3 --tiles 9 --lr 1e-2", "rgcn --hidden 6 --encoder linear --norm-layers row --classifier linear --jump concat",
                   "rgcn --hidden 8 --layers 3 --no-bias --residual identity --activation elu --lr 1e-2")
RELATIONS = 4
# Links of an undirected graph, of a directed one, and of one with relations.
LINKS = "--task links --embedding 8"
LINK_MODELS = (f"gcn {LINKS} --loss bce", f"gcn {LINKS} --decoder distmult --loss bpr --negatives 3 --tiles 3", f"gcn {LINKS} --decoder distmult --loss bce --tiles 9 --order none",
               f"sage {LINKS} --decoder mlp --loss bce --tiles 3", f"gcn {LINKS} --decoder mlp --loss bpr --negatives 2 --tiles 9 --residual linear",
               f"gat --heads 2 --hidden 4 {LINKS} --loss bce --tiles 3 --lr 1e-2", f"gcn {LINKS} --loss bpr --tiles 9 --activation elu --norm-layers row",
               f"gcn {LINKS} --decoder distmult --loss bce --layers 3 --jump max --tiles 3", f"sage {LINKS} --decoder mlp --loss bpr --jump max")
DIRECTED_LINK_MODELS = (f"gcn {LINKS} --loss bce --negatives 2 --tiles 3", f"sage {LINKS} --decoder distmult --loss bpr --tiles 9", f"gatv2 --heads 2 --hidden 4 {LINKS} --decoder mlp --loss bce --negatives 3 --lr 3e-2")
USER_LINK_MODELS = (f"sage {LINKS} --decoder distmult --loss bce --tiles 6 --order none",)  # tiles of items are sources of no link
RELATION_LINK_MODELS = (f"rgcn --hidden 6 {LINKS} --decoder distmult --loss bce --tiles 3", f"rgcn --hidden 5 {LINKS} --decoder mlp --loss bpr --negatives 2 --lr 1e-2")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"slopes.py: {' '.join(command)}: {done.stderr}")


def read(path):
    with open(path, "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return head, {name: array.array("f", data[slice(*of["data_offsets"])]) for name, of in head.items() if name != "__metadata__"}


def write(path, head, tensors):
    """Without a checksum, which says nothing about other tensors."""
    head = {**head, "__metadata__": {k: v for k, v in head["__metadata__"].items() if k != "crc32"}}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    names = sorted(tensors, key=lambda name: head[name]["data_offsets"][0])
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(tensors[name].tobytes() for name in names))


def last_loss(path):
    """That of the last epoch of a log."""
    with open(path) as file:
        return [event["loss"] for event in map(json.loads, file) if event["event"] == "epoch"][-1]


def loss(starling, dataset, folder, head, tensors, options):
    path, scores, log = (os.path.join(folder, name) for name in ("moved.ck", "scores.json", "log"))
    write(path, head, tensors)
    if "--task" in options:
        run(starling, "train", dataset, *options, "--epochs", str(EPOCHS + 1), "--resume", path, "--log", log)
        return last_loss(log)
    run(starling, "evaluate", path, dataset, "--metric", "loss", "--json", scores, "--quiet")
    with open(scores) as file:
        return json.load(file)["scores"]["loss"]["train"]


def check(starling, dataset, folder, model):
    """A later step, from weights at which biases are not 0."""
    options = ["--model", *model.split(), "--optimizer", "sgd", *([] if "--lr" in model else ["--lr", str(LEARNING_RATE)]), "--dropout", "0", "--weight-decay", "0",
               "--patience", "0", "--keep", "last", "--eval-every", "-1", "--seed", "5", "--quiet"]
    before, after = os.path.join(folder, "before.ck"), os.path.join(folder, "after.ck")
    run(starling, "train", dataset, *options, "--epochs", str(EPOCHS), "--checkpoint", before)
    run(starling, "train", dataset, *options, "--epochs", str(EPOCHS + 1), "--checkpoint", after)
    head, weights = read(before)
    momentum = read(after)[1]
    gradients = {}
    for name in [name for name in weights if name + ".moment1" in weights and "running" not in name]:
        first, both = weights[name + ".moment1"], momentum[name + ".moment1"]
        gradients[name] = [b - 0.9 * f for b, f in zip(both, first)]  # the momentum is 0.9 of the last one, and the gradient
    size = {name: math.sqrt(sum(g * g for g in gradient)) for name, gradient in gradients.items()}
    large = [name for name in gradients if size[name] >= LEAST]
    if not large:
        sys.exit(f"slopes.py: {model}: no gradient of at least {LEAST}")

    def slope_along(direction):
        """And the slope that the gradients say. `direction`: of each tensor, none longer than 1."""
        step = min(STEP, CHANGE / max(LEAST, sum(size[name] * math.sqrt(sum(d * d for d in way)) for name, way in direction.items())))
        losses = []
        for sign in (1, -1):
            moved = {**weights, **{name: array.array("f", [w + sign * step * d for w, d in zip(weights[name], way)]) for name, way in direction.items()}}
            losses.append(loss(starling, dataset, folder, head, moved, options))
        return (losses[0] - losses[1]) / (2 * step), sum(g * d for name, way in direction.items() for g, d in zip(gradients[name], way))

    def off(names, drawn):
        """How far the slope is off, relative to what one of the tensors adds to it. All add about as much."""
        def root(name):
            return math.sqrt(len(gradients[name]))

        def share(name):
            return max(size[name], LEAST) / (root(name) if drawn else 1)

        def way(name):
            if not drawn:
                return [g / size[name] for g in gradients[name]]
            signs = random.Random(name)
            return [signs.choice((-1, 1)) / root(name) for _ in gradients[name]]

        least = min(map(share, names))
        slope, expected = slope_along({name: [d * least / share(name) for d in way(name)] for name in names})
        return abs(slope - expected) / least, slope, expected

    # All tensors at once; where they are off, each alone, which steep models want.
    said = []
    for names, drawn, tolerance, what in ((large, False, TOLERANCE, "the gradient"), (list(gradients), True, DRAWN_TOLERANCE, "a direction")):
        said.append(off(names, drawn)[0])
        for name in names if not said[-1] <= tolerance else []:
            far, slope, expected = off([name], drawn)
            if not far <= tolerance:
                sys.exit(f"slopes.py: {model}: the loss rises by {slope:.5g} along {what} of {name}, expected {expected:.5g}, off by {far:.1e}")
    print(f"{model}: {len(large)} gradients, off by {said[0]:.1e}, and by {said[1]:.1e} along a direction")


def write_array(path, kind, numbers, columns=0):
    shape = f"({len(numbers) // columns}, {columns})" if columns else f"({len(numbers)},)"
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    code = {"<f4": "f", "<i4": "i", "<i8": "q"}[kind]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + array.array(code, numbers).tobytes())


def make_sparse(dataset, to):
    shutil.copytree(dataset, to)
    os.remove(os.path.join(to, "features.npy"))
    with open(os.path.join(to, "meta.json")) as file:
        meta = json.load(file)
    rows = [[v % FEATURES, (v + 2) % FEATURES] if v % 20 < 2 else [] for v in range(meta["nodes"])]
    rows = [sorted(row) for row in rows]
    flat = [column for row in rows for column in row]
    write_array(os.path.join(to, "features_indptr.npy"), "<i8", [0, *itertools.accumulate(map(len, rows))])
    write_array(os.path.join(to, "features_indices.npy"), "<i4", flat)
    write_array(os.path.join(to, "features_data.npy"), "<f4", [1 + i % 3 for i in range(len(flat))])
    meta["features"] = {"count": FEATURES, "form": "csr", "bag_of_words": False}
    with open(os.path.join(to, "meta.json"), "w") as file:
        json.dump(meta, file)


def read_array(path, code):
    with open(path, "rb") as file:
        file.seek(8)
        file.seek(10 + struct.unpack("<H", file.read(2))[0])
        return array.array(code, file.read())


def make_edges(dataset, to):
    """Every fifth entry is left out, and some rows; the others get features."""
    shutil.copytree(dataset, to)
    indptr, indices = read_array(os.path.join(to, "indptr.npy"), "q"), read_array(os.path.join(to, "indices.npy"), "i")
    rows = [[c for e, c in enumerate(indices[begin:end], begin) if e % 5 and v % 11] for v, (begin, end) in enumerate(zip(indptr, indptr[1:]))]
    flat = [c for row in rows for c in row]
    write_array(os.path.join(to, "indptr.npy"), "<i8", [0, *itertools.accumulate(map(len, rows))])
    write_array(os.path.join(to, "indices.npy"), "<i4", flat)
    write_array(os.path.join(to, "edge_features.npy"), "<f4", [math.sin(1.7 * i * i) for i in range(EDGE_FEATURES * len(flat))], EDGE_FEATURES)
    with open(os.path.join(to, "meta.json")) as file:
        meta = json.load(file)
    with open(os.path.join(to, "meta.json"), "w") as file:
        json.dump({key: meta[key] for key in ("features", "classes", "name")}, file)


def make_relations(dataset, to):
    """Every third entry is there twice, with two relations. The last relation has no edge."""
    make_edges(dataset, to)
    os.remove(os.path.join(to, "edge_features.npy"))
    indptr, indices = read_array(os.path.join(to, "indptr.npy"), "q"), read_array(os.path.join(to, "indices.npy"), "i")
    rows = [[(c, e * e % (RELATIONS - 2) + more) for e, c in enumerate(indices[begin:end], begin) for more in range(1 + (e % 3 == 0))]
            for begin, end in zip(indptr, indptr[1:])]
    flat = [entry for row in rows for entry in row]
    write_array(os.path.join(to, "indptr.npy"), "<i8", [0, *itertools.accumulate(map(len, rows))])
    write_array(os.path.join(to, "indices.npy"), "<i4", [c for c, _ in flat])
    write_array(os.path.join(to, "edge_types.npy"), "<i4", [relation for _, relation in flat])
    with open(os.path.join(to, "meta.json")) as file:
        meta = json.load(file)
    with open(os.path.join(to, "meta.json"), "w") as file:
        json.dump({**meta, "relations": RELATIONS}, file)


def main(starling, folder):
    dense, sparse, edges, relations, users = (os.path.join(folder, name) for name in ("dense", "sparse", "edges", "relations", "users"))
    run(starling, "generate", "community", dense, "--vertices", "60", "--features", "12", "--classes", "3", "--seed", "4", "--quiet")
    make_sparse(dense, sparse)
    make_edges(dense, edges)
    make_relations(dense, relations)
    run(sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "links.py"), "make", "users", users)
    for dataset, models in ((dense, MODELS), (sparse, SPARSE_MODELS), (edges, EDGE_MODELS), (relations, RELATION_MODELS), (dense, LINK_MODELS), (sparse, LINK_MODELS[:2]),
                            (edges, DIRECTED_LINK_MODELS), (relations, RELATION_LINK_MODELS), (users, USER_LINK_MODELS)):
        for model in models:
            check(starling, dataset, folder, model)


if __name__ == "__main__":
    main(*sys.argv[1:])
