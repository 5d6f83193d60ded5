"""A case of tests/limits.sh: the program at one limit of sizes.

    limits.py PROGRAM MPIRUN|"" CASE [all]

Works in the current folder. Each case trains, evaluates, predicts and plans. Logits are compared with a GCN in double
precision, written here; distributions on several ranks are compared with one rank. With "all", on more of them.
"""
import array
import json
import math
import os
import struct
import subprocess
import sys

program, mpirun, case = sys.argv[1:4]
whole = "all" in sys.argv[4:]
EPOCHS = 2
# One of these for a case; these and more with "all".
DISTRIBUTIONS = [(2, ["--distribution", "vertex-cut"]), (2, ["--distribution", "halo"]), (2, ["--distribution", "1d"])]
if whole:
    DISTRIBUTIONS += [(3, ["--distribution", "cover"]), (4, ["--distribution", "2d"]), (4, ["--grid", "2x1x2"]),
                      (4, ["--grid", "1x4x1"]), (3, ["--distribution", "vertex-cut"])]
else:
    DISTRIBUTIONS = [DISTRIBUTIONS[len(case) % 3]]


def run(words, ranks=1, status=0):
    """What the program prints to stdout, or its sentence if it is to fail."""
    launcher = [mpirun, "-n", str(ranks)] if ranks > 1 else []
    done = subprocess.run(launcher + [program] + [str(w) for w in words], capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL)
    line = " ".join(map(str, launcher + words))
    assert done.returncode == status, f"status {done.returncode} instead of {status}: {line}: {done.stderr[-2000:]}"
    if status:
        said = [s for s in done.stderr.split("\n") if s.startswith("starling: ")]
        assert len(said) == 1, f"not one sentence: {line}: {done.stderr[-2000:]}"
        return said[0]
    return done.stdout


def refused(text, words, ranks=1, status=1):
    said = run(words, ranks, status)
    assert text in said, f'no "{text}" in: {said}'


# ---- Datasets ----


def npy(path, kind, shape, values):
    header = str({"descr": kind, "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        values.tofile(file)


def dataset(name, rows, features, labels, classes, train, test, width=None):
    """rows: the neighbours of each vertex. features: a list of numbers of each, or None."""
    os.mkdir(name)
    indptr = array.array("q", [0])
    indices = array.array("i")
    for row in rows:
        indices.extend(row)
        indptr.append(len(indices))
    npy(f"{name}/indptr.npy", "<i8", [len(indptr)], indptr)
    npy(f"{name}/indices.npy", "<i4", [len(indices)], indices)
    if features is not None:
        width = len(features[0]) if width is None else width
        npy(f"{name}/features.npy", "<f4", [len(rows), width], array.array("f", [x for row in features for x in row]))
    npy(f"{name}/labels.npy", "<i4", [len(rows)], array.array("i", labels))
    npy(f"{name}/train_idx.npy", "<i8", [len(train)], array.array("q", train))
    npy(f"{name}/test_idx.npy", "<i8", [len(test)], array.array("q", test))
    with open(f"{name}/meta.json", "w") as file:
        json.dump({"name": name, "classes": classes}, file)


def shape(path):
    with open(path, "rb") as file:
        return [int(n) for n in file.read(128).split(b"(")[1].split(b")")[0].split(b",") if n.strip()]


def vertices(name):
    return shape(f"{name}/labels.npy")[0]


def floats(path):
    with open(path, "rb") as file:
        file.seek(8)
        (length,) = struct.unpack("<H", file.read(2))
        file.seek(10 + length)
        values = array.array("f")
        values.frombytes(file.read())
    return values


# ---- The reference ----


def tensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        found = {}
        for name, of in header.items():
            if name != "__metadata__" and "moment" not in name:
                file.seek(8 + length + of["data_offsets"][0])
                values = array.array("f")
                values.frombytes(file.read(of["data_offsets"][1] - of["data_offsets"][0]))
                found[name] = (of["shape"], values)
    return found


def reference(checkpoint, rows, features):
    """Logits of a GCN. rows: of each kind of vertex, (kind, how many of its neighbours are of it); features: of each kind."""
    of = tensors(checkpoint)
    degree = [1.0 + sum(count for _, count in row) for row in rows]
    h = [[float(x) for x in row] for row in features]
    layer = 0
    while f"layer.{layer}.weight" in of:
        (inputs, outputs), w = of[f"layer.{layer}.weight"]
        bias = of.get(f"layer.{layer}.bias", (None, [0.0] * outputs))[1]
        columns = [w[j::outputs] for j in range(outputs)]
        t = [[math.fsum(x * y for x, y in zip(row, column) if x) for column in columns] for row in h]
        h = []
        for v, row in enumerate(rows):
            terms = [(v, 1.0)] + [(u, float(count)) for u, count in row]
            scaled = [(t[u], count / math.sqrt(degree[v] * degree[u])) for u, count in terms]
            h.append([bias[j] + sum(row[j] * scale for row, scale in scaled) for j in range(outputs)])
        layer += 1
        if f"layer.{layer}.weight" in of:
            h = [[max(x, 0.0) for x in row] for row in h]
    return h


def near(found, wanted, what, tolerance=1e-4):
    largest = max((abs(x) for x in wanted), default=0.0)
    assert len(found) == len(wanted), f"{what}: {len(found)} numbers instead of {len(wanted)}"
    for k, (x, y) in enumerate(zip(found, wanted)):
        assert abs(x - y) <= tolerance * (largest + 1e-30), f"{what}: number {k} is {x} instead of {y}"


# ---- What each case does ----


def losses(log):
    events = [json.loads(line) for line in open(log)]
    found = [e["loss"] for e in events if e["event"] == "epoch" and e.get("loss") is not None]
    assert len(found) == EPOCHS and all(math.isfinite(x) for x in found), f"losses {found}"
    return found


def scores(path):
    return {k: v for k, v in json.load(open(path)).items() if k in ("loss", "accuracy", "scores")}


def trained(name, how, ranks=1):
    run(["train", name, "--epochs", EPOCHS, "--eval-every", 1, "--dropout", 0, "--normalize-features", "none", "--keep", "last",
         "--checkpoint", "ck", "--log", "log", "--quiet", "--workers", 1] + how, ranks)
    return losses("log")


def columns_of(how):
    """Columns of the grid of ranks."""
    option, value = how or ["--distribution", "1d"]
    return int(value.split("x")[1]) if option == "--grid" else 2 if value == "2d" else 1


def least_columns(name, options):
    """The narrowest of features, classes and hidden units, which columns of ranks share."""
    features = shape(f"{name}/features.npy")[1] if os.path.exists(f"{name}/features.npy") else vertices(name)
    hidden = int(options[options.index("--hidden") + 1]) if "--hidden" in options else 16
    return min(features, json.load(open(f"{name}/meta.json"))["classes"], hidden)


def everything(name, rows=None, kinds=None, features=None, options=("--hidden", "4"), distributions=None, tolerance=1e-4):
    """Compare with the reference, whose rows are of kinds of vertices; kinds: the kind of each vertex."""
    options = list(options)
    alone = trained(name, options)
    run(["predict", "ck", name, "--logits", "logits.npy", "--output", "classes.npy", "--quiet"])
    logits = floats("logits.npy")
    run(["evaluate", "ck", name, "--json", "scores.json", "--quiet"])
    best = scores("scores.json")
    if rows is not None:
        wanted = reference("ck", rows, features)
        columns = len(wanted[0])
        for v in kinds:
            near(logits[v * columns:(v + 1) * columns], wanted[kinds[v]], f"logits of vertex {v}", tolerance)
    run(["plan", name, "--ranks", min(3, vertices(name)), "--quiet", "--json", "plan.json"] + options)
    check_plan(json.load(open("plan.json")))
    os.rename("ck", "ck-alone")
    for ranks, how in distributions or DISTRIBUTIONS:
        if ranks > 1 and not mpirun:
            continue
        if columns_of(how) > least_columns(name, options):
            refused("no fewer than the grid's", ["train", name, "--epochs", EPOCHS, "--quiet", "--workers", 1] + options + how, ranks, 2)
            continue
        near(trained(name, options + how, ranks), alone, f"losses of {how} on {ranks} ranks", tolerance)
        run(["predict", "ck-alone", name, "--logits", "logits.npy", "--quiet"] + how, ranks)
        near(floats("logits.npy"), logits, f"logits of {how} on {ranks} ranks", tolerance)
        run(["evaluate", "ck-alone", name, "--json", "scores.json", "--quiet"] + how, ranks)
        assert scores("scores.json") == best, f"other scores with {how} on {ranks} ranks"


def check_plan(plan):
    found = numbers(plan["grids"])
    assert found and min(found) >= 0, "a negative number, or no plan"


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [x for part in value for x in numbers(part)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


# ---- Cases ----


def one_vertex():
    dataset("one", [[]], [[1.0, 2.0, -3.0]], [1], 2, [0], [])
    everything("one", [[]], {0: 0}, [[1.0, 2.0, -3.0]])
    dataset("loop", [[0]], None, [0], 2, [0], [])
    everything("loop", [[(0, 1)]], {0: 0}, [[1.0]])


def no_edges():
    features = [[(v * 7 + j * 3) % 5 - 2.0 for j in range(3)] for v in range(50)]
    dataset("apart", [[] for _ in range(50)], features, [v % 3 for v in range(50)], 3, range(0, 50, 2), range(1, 50, 2))
    everything("apart", [[] for _ in range(50)], {v: v for v in range(50)}, features)


def ring(n):
    return [sorted({(v - 1) % n, (v + 1) % n}) for v in range(n)]


def counted(rows):
    return [[(u, 1) for u in row] for row in rows]


def zero_features():
    rows = ring(20)
    labels = [v % 2 for v in range(20)]
    dataset("zeros", rows, [[0.0] * 3 for _ in rows], labels, 2, range(10), range(10, 20))
    everything("zeros", counted(rows), {v: v for v in range(20)}, [[0.0] * 3 for _ in rows])
    dataset("none", rows, [[] for _ in rows], labels, 2, range(10), range(10, 20), width=0)
    for words in ["info", "none"], ["train", "none"], ["plan", "none", "--ranks", 2]:
        refused("features", words)


def one_class():
    rows = ring(20)
    features = [[float(v % 3), 1.0] for v in range(20)]
    dataset("same", rows, features, [0] * 20, 1, range(10), range(10, 20))
    everything("same", counted(rows), {v: v for v in range(20)}, features)
    assert losses("log") == [0.0] * EPOCHS, "one class has no loss"


def no_training():
    rows = ring(20)
    features = [[float(v % 3), 1.0] for v in range(20)]
    labels = [v % 2 for v in range(20)]
    dataset("full", rows, features, labels, 2, range(10), range(10, 20))
    dataset("empty", rows, features, labels, 2, [], range(10, 20))
    refused("training", ["train", "empty", "--epochs", EPOCHS])
    if mpirun:
        refused("training", ["train", "empty", "--epochs", EPOCHS, "--distribution", "vertex-cut"], 2)
    trained("full", [])
    run(["evaluate", "ck", "full", "--json", "full.json", "--quiet"])
    run(["evaluate", "ck", "empty", "--json", "empty.json", "--quiet"])
    scores = [json.load(open(f"{name}.json"))["scores"] for name in ("full", "empty")]
    assert scores[0]["accuracy"]["test"] == scores[1]["accuracy"]["test"], scores
    run(["predict", "ck", "empty", "--output", "classes.npy", "--quiet"])
    refused("training", ["plan", "empty", "--ranks", 2])


# A float32 sum of a million equal terms, one after the other, is off by so much at most (docs/DATASETS.md).
STAR_TOLERANCE = 0.02


def star(leaves=1000000):
    """One vertex with all others for neighbours: sums of a million terms."""
    centre, leaf = [1.0, -2.0], [0.5, 0.25]
    for name, count in ("star", leaves), ("small", leaves if whole else leaves // 50):
        rows = [range(1, count + 1)] + [[0]] * count
        labels = [0] + [v % 2 for v in range(count)]
        dataset(name, rows, [centre] + [leaf] * count, labels, 2, range(0, count + 1, 10), [1])
    gradients("star", leaves, centre, leaf)
    everything("star", [[(1, leaves)], [(0, 1)]], {0: 0, 1: 1, leaves // 2: 1, leaves: 1}, [centre, leaf], distributions=[(1, [])],
               tolerance=STAR_TOLERANCE)
    everything("small")
    for model in [["--model", "sage", "--aggregator", "max"], ["--model", "gat"]] if whole else []:
        everything("small", options=["--hidden", "4"] + model)


def gradients(name, leaves, centre, leaf):
    """The second step of gradient descent, in double precision. Leaves of one label have the same rows."""
    step = ["--optimizer", "sgd", "--momentum", 0, "--weight-decay", 0, "--lr", 1, "--hidden", 4, "--no-bias"]
    for epochs in 1, 2:
        run(["train", name, "--epochs", epochs, "--dropout", 0, "--normalize-features", "none", "--keep", "last", "--quiet",
             "--checkpoint", f"step{epochs}", "--workers", 1] + step)
    before, after = tensors("step1"), tensors("step2")
    shape = [before[f"layer.{l}.weight"][0] for l in (0, 1)]
    w = [[[float(before[f"layer.{l}.weight"][1][i * shape[l][1] + j]) for j in range(shape[l][1])] for i in range(shape[l][0])]
         for l in (0, 1)]
    # Vertices of a kind: the centre, and leaves of each label, trained or not.
    kinds = [(centre, 0, 1, 1)] + [(leaf, label, sum(1 for v in range(1, leaves + 1) if (v - 1) % 2 == label and (v % 10 == 0) == on), on)
                                   for label in (0, 1) for on in (True, False)]
    kinds = [kind for kind in kinds if kind[2] > 0]
    trained_vertices = sum(count for _, _, count, on in kinds if on)

    def spread(rows):
        """A-hat times a matrix with a row of each kind."""
        apart = 1.0 / math.sqrt((leaves + 1.0) * 2.0)
        width = len(rows[0])
        first = [rows[0][j] / (leaves + 1.0) + apart * math.fsum(kinds[k][2] * rows[k][j] for k in range(1, len(kinds)))
                 for j in range(width)]
        return [first] + [[rows[k][j] / 2.0 + apart * rows[0][j] for j in range(width)] for k in range(1, len(kinds))]

    def times(rows, matrix):
        return [[math.fsum(x * matrix[i][j] for i, x in enumerate(row)) for j in range(len(matrix[0]))] for row in rows]

    def turned(matrix):
        return [list(column) for column in zip(*matrix)]

    def weight_gradient(inputs, outputs):
        return [[math.fsum(kinds[k][2] * inputs[k][i] * outputs[k][j] for k in range(len(kinds)))
                 for j in range(len(outputs[0]))] for i in range(len(inputs[0]))]

    x = [list(kind[0]) for kind in kinds]
    z = spread(times(x, w[0]))
    h = [[max(v, 0.0) for v in row] for row in z]
    logits = spread(times(h, w[1]))
    g = []
    for row, (_, label, _, on) in zip(logits, kinds):
        top = max(row)
        total = math.fsum(math.exp(v - top) for v in row)
        g.append([(math.exp(v - top) / total - (j == label)) / trained_vertices if on else 0.0 for j, v in enumerate(row)])
    g = spread(g)
    wanted = [None, weight_gradient(h, g)]
    g = [[v if z[k][j] > 0.0 else 0.0 for j, v in enumerate(row)] for k, row in enumerate(times(g, turned(w[1])))]
    wanted[0] = weight_gradient(x, spread(g))
    for l in 0, 1:
        name = f"layer.{l}.weight"
        found = [a - b for a, b in zip(before[name][1], after[name][1])]
        near(found, [v for row in wanted[l] for v in row], f"gradient of {name}", STAR_TOLERANCE)


def classes(count=65536):
    features = [[1.0, 2.0], [0.5, -1.0], [-1.0, 0.0]]
    rows = [[1], [0, 2], [1]]
    dataset("many", rows, features, [count - 1, 0, count // 2], count, [0, 1], [2])
    everything("many", counted(rows), {0: 0, 1: 1, 2: 2}, features)


def width(units=65536):
    features = [[1.0, 2.0], [0.5, -1.0], [-1.0, 0.0]]
    rows = [[1], [0, 2], [1]]
    dataset("wide", rows, features, [1, 0, 1], 2, [0, 1], [2])
    everything("wide", counted(rows), {0: 0, 1: 1, 2: 2}, features, ["--hidden", units])
    refused("over the 2 GiB that a tile may take", ["train", "wide", "--hidden", units, "--layers", 3], status=2)
    refused("--hidden: expected", ["train", "wide", "--hidden", (1 << 20) + 1], status=2)


def layers(depth=1000):
    rows = ring(12)
    features = [[float(v % 3), 1.0] for v in range(12)]
    dataset("deep", rows, features, [v % 2 for v in range(12)], 2, range(6), range(6, 12))
    everything("deep", counted(rows), {v: v for v in range(12)}, features, ["--hidden", 4, "--layers", depth])
    refused("--layers: expected", ["train", "deep", "--layers", 1001], status=2)
    for model in ["resgcn", "sage", "gat"] if whole else []:
        everything("deep", options=["--hidden", 4, "--layers", depth, "--model", model])


def entries():
    """Over 2^31 entries, of a shape: the plan of a graph needs no memory for it."""
    for ranks in 1, 64:
        run(["plan", "--like", "papers", "--ranks", ranks, "--json", "plan.json", "--quiet"])
        plan = json.load(open("plan.json"))
        check_plan(plan)
        assert max(numbers(plan)) > 1 << 32, "no number over 32 bits"


def many_ranks():
    """64 ranks, on whatever cores there are, of 34 vertices."""
    karate = os.environ["karate"]
    everything(karate, distributions=[(64, how) for how in (["--distribution", "1d"], ["--distribution", "vertex-cut"],
                                                            ["--distribution", "halo"], ["--grid", "8x2x4"])])


globals()[case]()
