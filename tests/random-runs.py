#!/usr/bin/env python3
"""Draw trainings at random, and compare several ranks with one.

usage: random-runs.py STARLING [--draws N] [--seed S] [--only K] [--folder DIR] [--seconds LIMIT] [--verbose]

A draw is a graph, a model, options of the training, and a way to share it among 1 to 4 ranks. Losses and tensors of the checkpoint are
those of one rank: the same bits where docs/DETERMINISM.md says so, else equal to rounding. Samples and batches of G groups are compared
with --groups Gx1. Late messages have no such run: they give the same bits again, with other workers.

A relu, a maximum, or a small gradient under Adam turns a rounding error into a difference, in a vertex of a few runs in a hundred. So a
run that differs is compared with one rank that rounds otherwise: other tiles, other instructions. What is missing in a sum stays missing.

A combination that the program refuses in one sentence counts as refused. A crash, a hang, or a message that is no sentence is a failure.
A failure prints the commands, to be pasted; graphs stay in the folder."""
import argparse, array, json, os, random, re, shlex, subprocess, sys

EPOCHS = 4
ROUNDING = {"fp32": (1e-4, 2e-3), "bf16": (3e-2, 1e-1)}  # largest relative differences of losses and of tensors
OTHERWISE = ("--tiles 1", "--tiles 3", "--tiles 8", "--tiles 4 --instructions base", "--tiles 2 --instructions base")


def write_npy(path, kind, shape, values):
    """Write numbers of type f4, i4 or i8 as a .npy file."""
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = array.array({"f4": "f", "i4": "i", "i8": "q"}[kind], values).tobytes()
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data)


def draw_edges(r, kind, n):
    """Draw the sorted neighbours of each vertex. In a graph with isolated vertices, the last ones have none."""
    rows = [set() for _ in range(n)]
    linked = max(1, n - n // 8 - 1) if "isolated" in kind else n
    for v in range(linked):
        for u in [0] if "star" in kind else [int(linked * r.random() ** 2) for _ in range(r.choice((0, 1, 2, 3, 5)))]:
            rows[v].add(u)
            if "directed" not in kind:
                rows[u].add(v)
    return [sorted(row) for row in rows]


def write_graph(path, kind, n, r):
    """Write a small graph. `kind` has words for its edges, its labels and its features."""
    os.makedirs(path)
    rows, columns, classes, where = draw_edges(r, kind, n), r.choice((3, 8, 17)), r.choice((2, 3, 5)), r.sample(range(n), n)
    if "related" in kind:  # some vertices have two edges, of two relations
        relations = r.choice((2, 3, 9))
        rows = [[u for u in row for _ in range(r.choice((1, 1, 2)))] for row in rows]
        flat = [(v, k) for v, row in enumerate(rows) for k in range(len(row))]
        types = []
        for v, k in flat:
            again = k > 0 and rows[v][k] == rows[v][k - 1]
            types.append((types[-1] + 1) % relations if again else r.randrange(relations - 1))
        write_npy(f"{path}/edge_types.npy", "i4", [len(types)], types)
    write_npy(f"{path}/indptr.npy", "i8", [n + 1], [sum(map(len, rows[:v])) for v in range(n + 1)])
    write_npy(f"{path}/indices.npy", "i4", [sum(map(len, rows))], [u for row in rows for u in row])
    if "weighted" in kind:
        weights = [1 + (v + u) % 7 / 4 if "directed" not in kind else r.choice((0.25, 1, 2.5)) for v in range(n) for u in rows[v]]
        write_npy(f"{path}/weights.npy", "f4", [len(weights)], weights)
    if "edged" in kind:
        width, entries = r.choice((1, 3, 6)), sum(map(len, rows))
        write_npy(f"{path}/edge_features.npy", "f4", [entries, width], [r.gauss(0, 1) for _ in range(entries * width)])
    if "classes" in kind:
        write_npy(f"{path}/labels.npy", "i4", [n], [v if v < classes else r.randrange(-1, classes) for v in range(n)])
    else:
        labels = [r.choice((0, 0, 1)) if "multilabel" in kind else r.gauss(0, 1) for _ in range(n * classes)]
        write_npy(f"{path}/labels.npy", "f4", [n, classes], labels)
    if "identity" not in kind:  # of words, most are 0: they are read as CSR
        features = [r.choice((0, 0, 0, 1, 2)) if "words" in kind else r.gauss(0, 1) for _ in range(n * columns)]
        write_npy(f"{path}/features.npy", "f4", [n, columns], features)
    for name, part in (("train", where[: n // 2 + 1]), ("val", where[n // 2 + 1 : 3 * n // 4 + 1]), ("test", where[3 * n // 4 + 1 :])):
        write_npy(f"{path}/{name}_idx.npy", "i8", [len(part)], sorted(part))
    with open(f"{path}/meta.json", "w", encoding="utf-8") as f:
        json.dump({"multilabel": "multilabel" in kind, "regression": "numbers" in kind}, f)


def draw_graph(r, starling, folder):
    """Return the directory of a graph, which is made unless it is there."""
    seed, n, words = r.randrange(100), r.choice((5, 23, 61, 61, 150)), []
    if r.random() < 0.3:
        words = r.choice(("community --vertices 90 --classes 4 --degree 6 --features 9", "community --vertices 400 --degree 5 --features 9",
                          "rmat --scale 8 --edge-factor 4", "rmat --scale 6 --no-symmetric --edge-factor 3 --classes 3")).split()
        path = f"{folder}/{'-'.join(word.strip('-') for word in words)}-{seed}"
    else:
        kind = [w for w, chance in (("directed", 0.4), ("weighted", 0.4), ("isolated", 0.4), ("star", 0.15), ("edged", 0.5)) if r.random() < chance]
        kind = [w for w in kind if w != "edged" or "weighted" not in kind]
        kind += ["related"] if r.random() < 0.3 and not {"edged", "weighted"} & set(kind) else []
        kind += [r.choice(("classes", "classes", "multilabel", "numbers")), r.choice(("dense", "dense", "words", "identity"))]
        path = f"{folder}/{'-'.join(kind)}-{n}-{seed}"
    if words and not os.path.isdir(path):
        subprocess.run([starling, "generate", words[0], path, *words[1:], "--seed", str(seed), "--quiet"], check=True)
    elif not os.path.isdir(path):
        write_graph(path, kind, n, random.Random(os.path.basename(path)))
    return path


MODELS = ("gcn", "gcn", "gcn", "gcn --norm row", "sage", "sage", "sage --aggregator gcn", "sage --aggregator sum",
          "sage --aggregator max", "sage --aggregator min", "gat --heads 2", "gat --heads 2", "gat --heads 4 --out-heads 2", "gatv2 --heads 2",
          "gatv2 --heads 3 --out-heads 2", "transformer --heads 2", "transformer --heads 4 --residual none", "resgcn",
          "resgcn --block-norm batch", "resgcn --aggregator mean", "resgcn --block-aggregator sum", "gin", "gine", "gine", "rgcn", "rgcn", "rgcn --bases 2", "sgc --hops 2", "appnp --hops 3", "jknet")
MODELS_OF = {"gine": "edged", "rgcn": "related"}  # and the graphs that they want
ANY = ((0.3, "--input-dropout 0"), (0.2, "--no-bias"), (0.2, "--clip-norm 0.1"), (0.2, "--no-cache-aggregate"), (0.1, "--schedule cosine"),
       (0.4, "--product-order gemm", "--product-order spmm"), (0.2, "--feature-form csr", "--feature-form dense"),
       (0.2, "--normalize-features l1", "--normalize-features l2"), (0.2, "--weight-decay-all"), (0.3, "--balance rows"),
       (0.2, "--block-columns 16"))
BATCHES = ("--batches co:2", "--batches co:3", "--batches clusters:4,2", "--batches clusters:5,2", "--batches co:2 --max-hop 1 --fanout 2",
           "--batches co:2 --fanout 2 --resample 2")
SUBMODELS = ("", "--share copies --local-steps 2", "--share none", "--local-steps 2", "--unit-sums scaled", "--partition-units latin",
             "--partition-units fixed")
MESSAGES = ((0.2, "--sum-order own-first"), (0.2, "--no-cache-adjacency"), (0.3, "--broadcast tree", "--broadcast direct"),
            (0.2, "--no-overlap"))

def maybe(r, chance, *choices):
    return r.choice(choices).split() if r.random() < chance else []


def draw_blocks(r, model):
    """Draw what stands before, in and after the layers of a model."""
    name = model.split()[0]
    heads = name in ("gat", "gatv2", "transformer")
    if not heads and name not in ("gcn", "sage", "gin", "gine", "rgcn", "jknet") or r.random() < 0.3:
        return []
    o = maybe(r, 0.3, "--encoder none" if name == "gine" else "--encoder linear") + maybe(r, 0.3, "--activation elu", "--activation relu")
    o += maybe(r, 0.4, "--norm-layers row", "--norm-layers batch")
    if (heads or name in ("gcn", "sage", "rgcn")) and "--out-heads" not in model:
        o += maybe(r, 0.3, "--classifier linear") + maybe(r, 0.3, "--jump concat", "--jump sum", "--jump max")
    o += maybe(r, 0.2, "--linear-init pytorch")
    linear = name in ("gcn", "jknet") or heads and "--out-heads" not in model
    if name not in ("gin", "gine") and "--residual" not in model:
        o += maybe(r, 0.4, "--residual identity", *(["--residual linear"] if linear else []))
    return o


def draw_training(r, graph):
    """Draw options that one rank has, too: the model and the training."""
    model, kind = r.choice([m for m in MODELS if MODELS_OF.get(m.split()[0], "") in graph]), r.random()
    o = f"--model {model} --hidden {r.choice((4, 7, 16))} --layers {r.choice('1223334')} --seed {r.randrange(1000)}".split()
    o += f"--epochs {EPOCHS} --eval-every 2 --patience 0 --dropout {r.choice((0, 0.3, 0.5))} --tiles {r.choice('1235679')}".split()
    # Adam divides a gradient by its size: where bfloat16 rounds a small one to the other sign, a weight goes the other way.
    # So it is where a norm of the columns of a sub-model's one unit takes out what a weight does.
    narrow, blocks = "gat" not in model and model.split()[0] not in MODELS_OF and r.random() < 0.2, draw_blocks(r, model)
    alone = "batch" in blocks and 0.25 <= kind < 0.45
    o += maybe(r, 0.2, "--edge-features none") if "edged" in graph and "gat" in model else []
    o += f"--optimizer {'sgd --precision bf16' if narrow else 'sgd' if alone else r.choice(('sgd', 'adam', 'adamw'))}".split()
    o += [word for chance, *choices in ANY for word in maybe(r, chance, *choices)] + blocks
    if "csr" not in o and "identity" not in graph and "rmat" not in graph:
        o += maybe(r, 0.2, "--project-features 5")
    if "numbers" not in graph:
        o += maybe(r, 0.15, "--class-weights balanced") + maybe(r, 0.1, "--label-smoothing 0.1")
        o += maybe(r, 1 if "rmat" in graph else 0.1, "--split 40/30/30")
    o += maybe(r, 0.4, "--recompute 2") if "resgcn" in model else []
    if kind < 0.45:
        return o + (maybe(r, 1, *BATCHES) if kind < 0.25 else ["--submodels", r.choice("234"), *maybe(r, 1, *SUBMODELS)])
    return o + maybe(r, 0.4, "--rows all", "--rows needed")


def draw_sharing(r, ranks, training):
    """Draw how ranks share the work: a distribution, perhaps inside groups, and a vertex order."""
    o, each, whole = [], ranks, not {"--batches", "--submodels", "--rows"} & set(training)
    if ranks > 1 and r.random() < 0.35:
        each = r.choice([p for p in range(1, ranks + 1) if ranks % p == 0])
        o = ["--groups", f"{ranks // each}x{each}"]
        o += maybe(r, 0.6 * whole, "--preload-hops 1", "--preload-hops 2", "--max-hop 1", "--fanout 2 --resample 1")
    grids = [f"{a}x{b}x{each // a // b}" for a in range(1, each + 1) for b in range(1, each + 1)
             if each % (a * b) == 0 and (b == 1 or "rgcn" not in training)]
    kind = r.choice(["1d", "1d", "halo", "cover", "vertex-cut", "vertex-cut", "grid", "grid", "auto"] + ["1.5d"] * (each % 2 == 0))
    if kind != "vertex-cut":
        o += maybe(r, 0.3, "--order random", "--order degree", "--order rabbit", *(["--order double"] if whole else []))
    elif not o:
        o += maybe(r, 0.5, "--partition libra", "--partition hdrf", "--partition random")
        late = f"--delay {r.choice(('cd-1', 'cd-2', '0c'))} --exact-epochs {r.choice((0, 1, EPOCHS))}"
        o += maybe(r, whole, late, late, late + " --partial-sums unscaled")
    o += ["--grid", r.choice(grids)] if kind == "grid" else ["--distribution", kind]
    return o + [word for chance, *choices in MESSAGES for word in maybe(r, chance, *choices)]


LINKS = ((1, "--decoder dot", "--decoder dot", "--decoder distmult", "--decoder mlp"), (1, "--loss bce", "--loss bpr"), (0.5, "--negatives 2", "--negatives 5"),
         (0.5, "--embedding 3", "--embedding 20"), (0.7, "--split-edges 60/20/20", "--split-edges 80/0/20 --eval-negatives 3"))
NO_LINKS = {"--batches", "--submodels", "--groups", "--preload-hops", "--partition", "--delay", "double", "vertex-cut"}
NOT_OF_LINKS = {"--split", "--class-weights", "--label-smoothing", "--rows"}  # options with a value


def draw_links(r, training, sharing):
    """Draw a model of links out of some of the trainings that can have one."""
    if NO_LINKS & {*training, *sharing} or r.random() < 0.6:
        return training
    kept = [word for before, word in zip(["", *training], training) if not NOT_OF_LINKS & {before, word}]
    drawn = [word for chance, *choices in LINKS for word in maybe(r, chance, *choices)]
    if "mlp" in drawn:  # with bpr, the gradient of its bias is 0 but for rounding: Adam makes it as large as any
        kept[kept.index("--optimizer") + 1] = "sgd"
    return kept + ["--task", "links"] + drawn


def value(options, name, default=None):
    return options[options.index(name) + 1] if name in options else default


def reference(training, sharing, ranks):
    """Return the ranks and the sharing of the run to compare with, and what must agree: bits, rounding, again."""
    if ranks > 1 and value(sharing, "--exact-epochs", str(EPOCHS)) != str(EPOCHS):
        return ranks, [*sharing, "--workers", "3", "--scheduler", "prio"], "again"
    kept = [w for name in ("--max-hop", "--fanout", "--resample", "--order") if name in sharing for w in (name, value(sharing, name))]
    sampled = "--max-hop" in sharing or "--fanout" in sharing
    groups = int(value(sharing, "--groups", "1x1").split("x", maxsplit=1)[0]) if sampled or "--batches" in training else 1
    # Batches and groups have a share of each hop for each rank.
    alike = value(sharing, "--distribution") == "1d" and not {"own-first", "--groups"} & set(sharing)
    return groups, kept + (["--groups", f"{groups}x1"] if sampled or groups > 1 else []), (
        "bits" if alike and not value(training, "--batches", "").startswith("co") else "rounding")


Failure = AssertionError


def execute(starling, ranks, words, seconds):
    """Run the program. Return None, or the sentence with which it refused."""
    launch = [os.environ.get("MPIRUN") or "mpirun", "-n", str(ranks)] if ranks > 1 else []
    done = subprocess.run(["timeout", "-k", "5", str(seconds), *launch, starling, *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    said = re.sub(r"-{60,}\n(.*\n)*?-{60,}\n", "", done.stderr)  # without the launcher's words
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(("starling: note: ", "[warn] Epoll"))]
    if done.returncode and (done.returncode > 2 or len(lines) != 1 or not lines[0].startswith("starling: ")):
        raise Failure(f"exit status {done.returncode}: {done.stderr[-2000:]}")
    return lines[0] if done.returncode else None


def read_run(path):
    """Return the losses of a run, and its tensors, but for messages on their way and the best epoch's."""
    with open(path + ".log", encoding="utf-8") as f:
        losses = [event["loss"] for event in map(json.loads, f) if event["event"] == "epoch"]
    with open(path + ".ck", "rb") as f:
        header, data = json.loads(f.read(int.from_bytes(f.read(8), "little"))), f.read()
    tensors = {name: array.array("f", data[slice(*entry["data_offsets"])]) for name, entry in header.items()
               if name != "__metadata__" and not name.startswith("late.") and ".best" not in name}
    return losses, tensors


def compare(mine, other, most, scores_alone=False):
    """Fail unless two runs have the same losses and tensors. `most`: relative differences, in a tensor of its largest number.
    `scores_alone`: leave out weights that make scores alone. A vertex with one neighbour has the same sum whatever the score, whose gradient is
    then rounding; Adam makes it as large as any."""
    (losses, tensors), (wanted, expected) = read_run(mine), read_run(other)
    if len(losses) != len(wanted) or {k: len(t) for k, t in tensors.items()} != {k: len(t) for k, t in expected.items()}:
        raise Failure(f"{len(losses)} losses, expected {len(wanted)}; tensors {sorted(tensors.keys() ^ expected.keys())} differ")
    for epoch, (x, y) in enumerate(zip(losses, wanted), 1):
        if not abs(x - y) <= most[0] * max(abs(y), 1e-3):
            raise Failure(f"epoch {epoch}: loss {x}, expected {y}")
    # Gradients that are rounding alone are as small as the others' last digits.
    least = max(2e-5, 1e-4 * max((abs(g) for name, t in expected.items() if ".moment1" in name for g in t), default=0)) if most[1] else 0
    for name, numbers in expected.items():
        if scores_alone and any(word in name for word in (".att", "lin_r", "lin_query", "lin_key", "lin_edge")):
            continue
        size = max(map(abs, numbers), default=0)
        error = max((abs(a - b) for a, b in zip(tensors[name], numbers)), default=0)
        if not error <= most[1] * max(size, least):
            raise Failure(f"{name}: differs by {error:.2g}, its largest number is {size:.2g}")


def run_draw(options, number):
    """Train a draw and its reference. Return what agreed; print the commands of a failure."""
    r = random.Random(f"{options.seed} {number}")
    graph, ranks, commands = draw_graph(r, options.starling, options.folder), r.choice((1, 2, 2, 3, 3, 4, 4)), []
    training = draw_training(r, graph)
    sharing = draw_sharing(r, ranks, training)
    training = draw_links(random.Random(f"{options.seed} {number} links"), training, sharing)
    other_ranks, other_sharing, how = reference(training, sharing, ranks)
    mine, other = f"{options.folder}/several", f"{options.folder}/one"

    def train(out, on, *words):
        words = ["train", graph, *training, "--workers", "1", *words, "--quiet", "--log", f"{out}.log", "--checkpoint", f"{out}.ck"]
        commands.append((f"mpirun -n {on} " if on > 1 else "") + shlex.join([options.starling, *words]))
        for path in (f"{out}.log", f"{out}.ck"):
            if os.path.exists(path):
                os.remove(path)
        return execute(options.starling, on, words, options.seconds)

    try:
        refusal = train(mine, ranks, *sharing) or train(other, other_ranks, *other_sharing)
        if refusal:
            print(f"{number}: {refusal}\n" * options.verbose, end="")
            return "refused"
        for otherwise in ("", *(OTHERWISE if how == "rounding" else ())):
            try:
                refusal = train(other, other_ranks, *other_sharing, *otherwise.split()) if otherwise else None
                adam = how == "rounding" and value(training, "--model") in ("gatv2", "transformer") and value(training, "--optimizer") != "sgd"
                compare(mine, other, ROUNDING[value(training, "--precision", "fp32")] if how == "rounding" else (0, 0), adam)
                return how if not otherwise else "otherwise"
            except Failure as failure:
                first = failure if not otherwise else first
        raise first
    except Failure as failure:
        print(f"FAIL  draw {number} of --seed {options.seed} ({how}): {failure}", *commands[:2], sep="\n    ", flush=True)
        return "failed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("starling")
    for name, default in (("draws", 20), ("seed", 1), ("only", -1), ("seconds", 120)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", default="random-graphs")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.folder = os.path.abspath(options.folder)
    os.makedirs(options.folder, exist_ok=True)
    results = [run_draw(options, k) for k in (range(options.draws) if options.only < 0 else [options.only])]
    print(f"{len(results)} draws:", ", ".join(f"{results.count(kind)} {words}" for kind, words in (
        ("bits", "with the same bits"), ("rounding", "equal to rounding"), ("otherwise", "to that of other tiles or instructions"),
        ("again", "with the same bits again"), ("refused", "refused"), ("failed", "failed"))))
    sys.exit("failed" in results)


if __name__ == "__main__":
    main()
