#!/usr/bin/env python3
"""Edge features stay with their edges through starling convert, and trainings read them or say why not.

Usage: tests/edge-features.py STARLING FOLDER

Edges are drawn, some twice and some both ways, and written in each format that has edge features. What
convert makes of them is compared with dictionaries of edges.
"""
import gzip, json, os, random, struct, subprocess, sys

VERTICES, EDGES, WIDTH = 23, 90, 3


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"edge-features.py: {' '.join(command)}: {done.stderr}")
    return done.stderr


def refused(word, *command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode not in (1, 2, 3) or word not in done.stderr:
        sys.exit(f"edge-features.py: {' '.join(command)}: exit {done.returncode}: {done.stderr}")


def write_npy(path, kind, items, shape):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    code = {"<i8": "q", "<i4": "i", "<f4": "f", "<f8": "d"}[kind]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(items)}{code}", *items))


def read_npy(path):
    with open(path, "rb") as file:
        head = file.read(10)
        kind = eval(file.read(struct.unpack("<H", head[8:])[0]))["descr"]
        data = file.read()
    code, size = {"<i8": ("q", 8), "<i4": ("i", 4), "<f4": ("f", 4)}[kind]
    return struct.unpack(f"<{len(data) // size}{code}", data)


def entries(folder):
    """{(row, column): features} of a folder, in the numbers of the source."""
    indptr, indices, edge = (read_npy(f"{folder}/{name}.npy") for name in ("indptr", "indices", "edge_features"))
    number = read_npy(f"{folder}/original_ids.npy") if os.path.exists(f"{folder}/original_ids.npy") else range(VERTICES)
    found = {}
    for row in range(VERTICES):
        for e in range(indptr[row], indptr[row + 1]):
            found[number[row], number[indices[e]]] = edge[WIDTH * e:WIDTH * (e + 1)]
    if len(edge) != WIDTH * len(found):
        sys.exit(f"{folder}: {len(edge)} features of {len(found)} entries")
    return found


def expect(name, got, want):
    if set(got) != set(want):
        sys.exit(f"edge-features.py: {name}: other entries")
    for key in want:
        if any(abs(a - b) > 1e-5 for a, b in zip(got[key], want[key])):
            sys.exit(f"edge-features.py: {name}: entry {key} has {got[key]}, expected {want[key]}")


def merged(edges):
    """{(target, source): sum of the features}"""
    sums = {}
    for u, v, f in edges:
        sums[v, u] = [a + b for a, b in zip(sums.get((v, u), [0.0] * WIDTH), f)]
    return sums


def both_ways(sums, way):
    unite = {"max": max, "sum": lambda a, b: a + b, "mean": lambda a, b: (a + b) / 2}[way]
    out = {}
    for (r, c), f in sums.items():
        back = sums.get((c, r)) if r != c else None
        out[r, c] = out[c, r] = f if back is None else [unite(a, b) for a, b in zip(f, back)]
    return out


def turned(sums):
    return {(c, r): f for (r, c), f in sums.items()}


def write_folder(folder, sums, kind="<f4", shuffled=None):
    """The directory layout; `shuffled`: rows without order."""
    os.makedirs(folder)
    indptr, indices, edge = [0], [], []
    for row in range(VERTICES):
        keys = [key for key in sorted(sums) if key[0] == row]
        if shuffled:
            shuffled.shuffle(keys)
        indices += [c for _, c in keys]
        edge += [x for key in keys for x in sums[key]]
        indptr.append(len(indices))
    with open(f"{folder}/meta.json", "w") as file:
        json.dump({}, file)
    write_npy(f"{folder}/indptr.npy", "<i8", indptr, (VERTICES + 1,))
    write_npy(f"{folder}/indices.npy", "<i4", indices, (len(indices),))
    write_npy(f"{folder}/edge_features.npy", kind, edge, (len(indices), WIDTH))


def losses(log):
    with open(log) as file:
        return [json.loads(line).get("loss") for line in file if '"loss"' in line and '"epoch"' in line]


def train_all(starling, folder, sums):
    """Trainings of a dataset with edge features, without them, and with weights, too."""
    def dataset(name, *left_out, **more):
        path = f"{folder}/{name}"
        write_folder(path, sums)
        write_npy(f"{path}/labels.npy", "<i4", [v % 2 for v in range(VERTICES)], (VERTICES,))
        write_npy(f"{path}/train_idx.npy", "<i8", list(range(12)), (12,))
        write_npy(f"{path}/val_idx.npy", "<i8", list(range(12, 20)), (8,))
        for array in left_out:
            os.remove(f"{path}/{array}.npy")
        if "weights" in more:
            write_npy(f"{path}/weights.npy", "<f4", [1.5] * len(sums), (len(sums),))
        return path

    ones = dataset("ones", weights=True)
    write_npy(f"{ones}/weights.npy", "<f4", [1.0] * len(sums), (len(sums),))
    edged, plain, weighted = dataset("edged"), dataset("bare", "edge_features"), dataset("weighted", weights=True)
    counter = iter(range(1000))

    def train(path, *options):
        log = f"{folder}/log{next(counter)}"
        run(starling, "train", path, "--hidden", "4", "--epochs", "5", "--patience", "0", "--dropout", "0.2", "--quiet", "--log", log, *options)
        return losses(log)

    for model in ("gat --heads 2", "gatv2 --heads 2", "transformer --heads 2"):
        options = ("--model", *model.split())
        read, left, without = train(edged, *options), train(edged, *options, "--edge-features", "none"), train(plain, *options)
        if left != without or read == without or train(ones, *options) != read or len(read) < 5:
            sys.exit(f"edge-features.py: {model}: losses {read}; --edge-features none {left}; no features {without}")
        refused("weights and features", starling, "train", weighted, *options)
        train(weighted, *options, "--edge-features", "none")
    refused("no edge features", starling, "train", plain, "--model", "gine")
    refused("expected edge_features.npy", starling, "train", edged, "--model", "gine", "--edge-features", "none")
    refused("weights and features", starling, "train", weighted, "--model", "gine")
    refused("gcn does not have it", starling, "train", edged, "--model", "gcn", "--edge-features", "none")
    refused("--precision bf16", starling, "train", edged, "--model", "gine", "--precision", "bf16")

    # a model goes on, and its checkpoint knows whether it reads edge features
    for model in ("gat --heads 2", "gatv2 --heads 2", "transformer --heads 2", "gine"):
        options = ("--model", *model.split())
        whole = train(edged, *options, "--checkpoint", f"{folder}/whole")
        train(edged, *options, "--stop-after", "3", "--checkpoint", f"{folder}/{model.split()[0]}")
        log = f"{folder}/log{next(counter)}"
        run(starling, "train", edged, "--resume", f"{folder}/{model.split()[0]}", "--quiet", "--log", log)
        if losses(log) != whole[3:]:
            sys.exit(f"edge-features.py: {model}: went on with {losses(log)}, expected {whole[3:]}")
        run(starling, "predict", f"{folder}/whole", edged, "--output", f"{folder}/p.npy", "--quiet")
    narrow = dataset("narrow", "edge_features")
    refused("reads 3 edge features", starling, "predict", f"{folder}/gat", narrow)
    refused("no edge features", starling, "predict", f"{folder}/gine", narrow)
    train(plain, "--model", "gat", "--heads", "2", "--checkpoint", f"{folder}/plain.ck")
    for path in (plain, edged):
        run(starling, "predict", f"{folder}/plain.ck", path, "--logits", f"{path}/logits.npy", "--quiet")
    if read_npy(f"{plain}/logits.npy") != read_npy(f"{edged}/logits.npy"):
        sys.exit("edge-features.py: a model that was trained without edge features read some")


def main():
    starling, folder = sys.argv[1:]
    draw = random.Random(3)
    edges = [(0, 1), (0, 1), (2, 2), (4, 3), (3, 4), (VERTICES - 1, 0)]
    edges += [(draw.randrange(VERTICES), draw.randrange(VERTICES)) for _ in range(EDGES)]
    edges = [(u, v, [draw.randrange(-8, 9) / 4 for _ in range(WIDTH)]) for u, v in edges]
    sums = merged(edges)

    def convert(name, source, *options):
        target = f"{folder}/{name}"
        run(starling, "convert", source, target, *options, "--quiet")
        return entries(target)

    # an edge list, whose columns have names; the weight is not a feature
    path = f"{folder}/edges.csv"
    with open(path, "w") as file:
        file.write("a,source,target,b,weight,c\n")
        for u, v, f in edges:
            file.write(f"{f[0]},{u},{v},{f[1]},2.5,{f[2]}\n")
    columns = ("--edge-features", "a,b,c")
    expect("edge list", convert("list", path, *columns), sums)
    if os.path.exists(f"{folder}/list/weights.npy") is False:
        sys.exit("edge-features.py: the edge list has lost its weights")
    for way in ("max", "sum", "mean"):
        expect(f"--symmetrize {way}", convert(way, path, *columns, "--symmetrize", way), both_ways(sums, way))
    expect("--reverse", convert("reverse", path, *columns, "--reverse"), turned(sums))
    refused("column 'd' is not there", starling, "convert", path, f"{folder}/none", "--edge-features", "a,d")
    refused("end of edges", starling, "convert", path, f"{folder}/none", "--edge-features", "source")
    refused("named twice", starling, "convert", path, f"{folder}/none", "--edge-features", "a,a")
    refused("is not there", starling, "convert", path, f"{folder}/none", "--edge-features", "a,,b")
    with open(f"{folder}/wide.csv", "w") as file:
        file.write("source,target,a,b\n0,1,5\n1,2,6\n")
    for column in ("b", "source"):
        refused("names 4 columns, expected the 3", starling, "convert", f"{folder}/wide.csv", f"{folder}/none", "--edge-features", column)
    refused("no edge list", starling, "convert", f"{folder}/list", f"{folder}/none", *columns)

    # folders: sorted, other types, unsorted, orders
    write_folder(f"{folder}/plain", sums)
    expect("folder", convert("plain2", f"{folder}/plain"), sums)
    write_folder(f"{folder}/double", sums, "<f8", draw)
    expect("unsorted folder", convert("double2", f"{folder}/double"), sums)
    for order in ("random", "rcm", "degree"):
        expect(f"--order {order}", convert(f"order-{order}", f"{folder}/double", "--order", order), sums)
        expect(f"--order {order} again", convert(f"again-{order}", f"{folder}/order-{order}", "--order", "random", "--seed", "4"), sums)
    expect("folder, --symmetrize", convert("both", f"{folder}/plain", "--symmetrize", "sum"), both_ways(sums, "sum"))
    expect("folder, --reverse", convert("turned", f"{folder}/double", "--reverse"), turned(sums))

    # an order that leaves the entries where they are
    write_folder(f"{folder}/star", {(0, v): [v, -v, 1.0] for v in range(1, VERTICES)})
    expect("--order of a star", convert("star2", f"{folder}/star", "--order", "degree"), {(0, v): [v, -v, 1.0] for v in range(1, VERTICES)})

    # an edge that is there twice: whose features are these?
    write_folder(f"{folder}/twice", {(0, 1): [1.0, 2.0, 3.0], (0, 2): [4.0, 5.0, 6.0]})
    write_npy(f"{folder}/twice/indices.npy", "<i4", [1, 1], (2,))
    for duplicates in ("one", "sum"):
        refused("twice", starling, "convert", f"{folder}/twice", f"{folder}/none", "--duplicates", duplicates)

    # an adjacency that is symmetric, with features that are not
    lopsided = {key: [key[0], key[1], 1.0] for key in both_ways(sums, "max")}
    write_folder(f"{folder}/lopsided", lopsided)
    expect("--reverse of a symmetric adjacency", convert("lopsided2", f"{folder}/lopsided", "--reverse"), turned(lopsided))

    # OGB's folders
    os.makedirs(f"{folder}/ogb/raw")
    plain = [(u, v, f) for u, v, f in edges]
    with gzip.open(f"{folder}/ogb/raw/edge.csv.gz", "wt") as file:
        file.writelines(f"{u},{v}\n" for u, v, _ in plain)
    with gzip.open(f"{folder}/ogb/raw/edge-feat.csv.gz", "wt") as file:
        file.writelines(",".join(map(str, f)) + "\n" for _, _, f in plain)
    for name, count in (("node", VERTICES), ("edge", len(plain))):
        with open(f"{folder}/ogb/raw/num-{name}-list.csv", "w") as file:
            file.write(f"{count}\n")
    expect("OGB", convert("ogb2", f"{folder}/ogb"), sums)
    expect("OGB, --symmetrize", convert("ogb3", f"{folder}/ogb", "--symmetrize"), both_ways(sums, "max"))
    with gzip.open(f"{folder}/ogb/raw/edge-feat.csv.gz", "wt") as file:
        file.writelines(",".join(map(str, f)) + "\n" for _, _, f in plain[1:])
    refused("edge-feat", starling, "convert", f"{folder}/ogb", f"{folder}/none")

    train_all(starling, folder, sums)

    # wrong files
    write_npy(f"{folder}/plain/edge_features.npy", "<f4", [0.0] * WIDTH, (1, WIDTH))
    refused("edge_features.npy: has 1 rows", starling, "convert", f"{folder}/plain", f"{folder}/none")
    count = len(sums)
    write_npy(f"{folder}/plain/edge_features.npy", "<f4", [0.0] * (count * WIDTH - 1) + [float("nan")], (count, WIDTH))
    refused("expected a finite number", starling, "convert", f"{folder}/plain", f"{folder}/none")
    write_npy(f"{folder}/plain/edge_features.npy", "<f4", [0.0] * count * 300, (count, 300))
    refused("expected 1 to 256", starling, "convert", f"{folder}/plain", f"{folder}/none")
    if "left out" not in run(starling, "convert", f"{folder}/double", f"{folder}/flat.txt"):
        sys.exit("edge-features.py: no note says that a file loses edge features")


main()
