#!/usr/bin/env python3
"""Relations stay with their edges through starling convert, and trainings read them or say why not.

Usage: tests/edge-types.py convert|refuse|train STARLING FOLDER

Edges are drawn: several of different relations between the same vertices, some twice with one relation,
and loops. What convert makes of them is compared with dictionaries of edges.
"""
import gzip, json, os, random, struct, subprocess, sys

VERTICES, EDGES, WIDTH, RELATIONS = 23, 110, 2, 5
KINDS = {"<i8": "q", "<i4": "i", "|u1": "B", "|b1": "B", "<f4": "f", "<f8": "d"}
SIZES = {"q": 8, "i": 4, "B": 1, "f": 4, "d": 8}


def fail(words):
    sys.exit(f"edge-types.py: {words}")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        fail(f"{' '.join(command)}: {done.stderr}")
    return done.stdout + done.stderr


def refused(word, *command):
    """One sentence with this word, and no other trace."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    said = [line for line in done.stderr.splitlines() if line.startswith("starling:") and " note: " not in line]
    if done.returncode not in (1, 2, 3) or word not in done.stderr or len(said) != 1:
        fail(f"{' '.join(command)}: exit {done.returncode}, no \"{word}\": {done.stderr}")
    if command[1] == "convert" and os.path.exists(command[3]):
        fail(f"{' '.join(command)}: left a folder")


# ---- Files ----

def write_npy(path, kind, items, *shape):
    shape = shape or (len(items),)
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack(f"<{len(items)}{KINDS[kind]}", *items))


def read_npy(path):
    with open(path, "rb") as file:
        head = file.read(10)
        kind = KINDS[eval(file.read(struct.unpack("<H", head[8:])[0]))["descr"]]
        data = file.read()
    return struct.unpack(f"<{len(data) // SIZES[kind]}{kind}", data)


def write_folder(folder, edges, kind="<i4", features=True, shuffled=None, order=None, **meta):
    """The directory layout; `shuffled`: rows without order; `order`: another key. Return the keys as they are stored."""
    os.makedirs(folder)
    indptr, stored = [0], []
    for row in range(VERTICES):
        keys = [key for key in sorted(edges, key=order) if key[0] == row]
        if shuffled:
            shuffled.shuffle(keys)
        stored += keys
        indptr.append(len(stored))
    with open(f"{folder}/meta.json", "w") as file:
        json.dump(meta, file)
    write_npy(f"{folder}/indptr.npy", "<i8", indptr)
    write_npy(f"{folder}/indices.npy", "<i4", [c for _, c, _ in stored])
    write_npy(f"{folder}/edge_types.npy", kind, [r for _, _, r in stored])
    if features:
        write_npy(f"{folder}/edge_features.npy", "<f4", [x for key in stored for x in edges[key][:WIDTH]], len(stored), WIDTH)
    if any(edges[key][WIDTH] != 1 for key in stored):
        write_npy(f"{folder}/weights.npy", "<f4", [edges[key][WIDTH] for key in stored])
    return stored


def entries(folder):
    """{(row, column, relation): features and weight} of a folder that starling wrote, in the numbers of the source."""
    def read(name, usual):
        return read_npy(f"{folder}/{name}.npy") if os.path.exists(f"{folder}/{name}.npy") else usual

    indptr, indices, types = (read_npy(f"{folder}/{name}.npy") for name in ("indptr", "indices", "edge_types"))
    features, weights, number = read("edge_features", None), read("weights", [1.0] * len(indices)), read("original_ids", range(VERTICES))
    found = {}
    for row in range(VERTICES):
        keys = [(indices[e], types[e]) for e in range(indptr[row], indptr[row + 1])]
        if keys != sorted(set(keys)):
            fail(f"{folder}: row {row} does not ascend: {keys}")
        for e in range(indptr[row], indptr[row + 1]):
            found[number[row], number[indices[e]], types[e]] = list(features[WIDTH * e:WIDTH * (e + 1)] if features else ()) + [weights[e]]
    if len(types) != len(indices) or (features and len(features) != WIDTH * len(indices)):
        fail(f"{folder}: {len(types)} relations and {len(features or ())} features of {len(indices)} entries")
    return found


def expect(name, folder, want, relations=RELATIONS):
    got = entries(folder)
    if set(got) != set(want):
        fail(f"{name}: entries {sorted(set(got) - set(want))} are there, expected {sorted(set(want) - set(got))}")
    for key in want:
        if len(got[key]) != len(want[key]) or any(abs(a - b) > 1e-5 for a, b in zip(got[key], want[key])):
            fail(f"{name}: entry {key} has {got[key]}, expected {want[key]}")
    with open(f"{folder}/meta.json") as file:
        if json.load(file).get("relations") != relations:
            fail(f"{name}: meta.json has other relations than {relations}")


# ---- Edges ----

def draw_edges(draw):
    """(source, target, relation, features, weight), some of them twice."""
    ends = [(0, 1, 0), (0, 1, 4), (0, 1, 0), (0, 1, 2), (2, 2, 1), (2, 2, 3), (2, 2, 1), (4, 3, 1), (3, 4, 1), (3, 4, 2), (VERTICES - 1, 0, 4)]
    ends += [(draw.randrange(VERTICES), draw.randrange(VERTICES), draw.randrange(RELATIONS)) for _ in range(EDGES)]
    ends += [(u, v, draw.randrange(RELATIONS)) for u, v, _ in ends[40:70]] + ends[60:70]
    draw.shuffle(ends)
    return [(u, v, r, [draw.randrange(-8, 9) / 4 for _ in range(WIDTH)], draw.randrange(1, 9) / 4) for u, v, r in ends]


def merged(edges, features=True, weight=lambda weights: sum(weights)):
    """{(target, source, relation): sums of the features, and the weight}"""
    sums, weights = {}, {}
    for u, v, r, f, w in edges:
        sums[v, u, r] = [a + b for a, b in zip(sums.get((v, u, r), [0.0] * WIDTH), f if features else ())]
        weights.setdefault((v, u, r), []).append(w)
    return {key: sums[key] + [weight(weights[key])] for key in sums}


def alone(edges):
    """The weights alone."""
    return {key: value[WIDTH:] for key, value in edges.items()}


def unweighted(edges):
    return {key: value[:WIDTH] + [1.0] for key, value in edges.items()}


def both_ways(edges, relations=RELATIONS):
    return {**edges, **{(c, r, relations + t): f for (r, c, t), f in edges.items() if r != c}}


def turned(edges):
    return {(c, r, t): f for (r, c, t), f in edges.items()}


# ---- A file for each relation ----

NAMES = ["a.b", "cites", "cites-too", "d", "writes"]  # in the order of relations


def write_text(folder, edges, names=NAMES, head="source,target", line=lambda u, v, r, f, w: f"{u},{v}"):
    os.makedirs(f"{folder}/relations")
    for r, name in enumerate(names):
        with open(f"{folder}/relations/{name}.{('csv', 'tsv', 'txt')[r % 3]}", "w") as file:
            lines = [head] + [line(*edge) for edge in edges if edge[2] == r]
            file.writelines(text.replace(",", "\t" if r % 3 == 1 else ",") + "\n" for text in lines)


def write_arrays(folder, edges, names=NAMES):
    os.makedirs(f"{folder}/relations")
    for r, name in enumerate(names):
        ends = [end for u, v, t, *_ in edges if t == r for end in (u, v)]
        write_npy(f"{folder}/relations/{name}.npy", ("<i8", "<i4", "|u1")[r % 3], ends, len(ends) // 2, 2)


def expect_same(one, other):
    """The same files, whatever the name of the dataset."""
    for file in sorted({*os.listdir(one), *os.listdir(other)}):
        with open(f"{one}/{file}", "rb") as a, open(f"{other}/{file}", "rb") as b:
            a, b = a.read(), b.read()
        if file == "meta.json":
            a, b = ({**json.loads(text), "name": None} for text in (a, b))
        if a != b:
            fail(f"{other}/{file} is not that of {one}")


def convert_files(starling, folder, edges):
    def convert(name, source, *options):
        run(starling, "convert", source, f"{folder}/{name}", *options, "--quiet")
        return f"{folder}/{name}"

    def listed(name, head, line):
        with open(f"{folder}/{name}.csv", "w") as file:
            file.writelines(text + "\n" for text in [head + ",rel"] + [f"{line(*edge)},{edge[2]}" for edge in sorted(edges, key=lambda edge: edge[2])])
        return f"{folder}/{name}.csv"

    lines = {"ends": ("source,target", lambda u, v, r, f, w: f"{u},{v}"), "weighted": ("source,target,weight", lambda u, v, r, f, w: f"{u},{v},{w}"),
             "featured": ("a,source,target,weight,b", lambda u, v, r, f, w: f"{f[0]},{u},{v},{w},{f[1]}"),
             "named": ("source,target", lambda u, v, r, f, w: f"v{u},v{v}" if r else f"{u},v{v}")}
    for name, (head, line) in lines.items():
        options = ("--edge-features", "a,b") if name == "featured" else ()
        want = convert(f"want-{name}", listed(f"list-{name}", head, line), "--edge-types", "rel", *options)
        write_text(f"{folder}/text-{name}", edges, head=head, line=line)
        expect_same(want, convert(f"got-{name}", f"{folder}/text-{name}", *options))
    want = f"{folder}/want-ends"
    write_arrays(f"{folder}/arrays", edges)
    expect_same(want, convert("got-arrays", f"{folder}/arrays"))
    both = convert("want-both", want, "--symmetrize")
    expect_same(both, convert("got-both", f"{folder}/arrays", "--symmetrize"))

    # what a line is: an edge, a header, a size; whatever the names of the files
    def graph(want, note, texts, *options):
        path = f"{folder}/lines{next(counter)}"
        for names in ("pqr", "rqp"):
            path += names
            os.makedirs(f"{path}/relations")
            for name, text in zip(names, texts):
                with (gzip.open(f"{path}/relations/{name}.csv.gz", "wt") if name == "q" else open(f"{path}/relations/{name}.csv", "w")) as file:
                    file.write(text)
            told = run(starling, "convert", path, f"{path}-made", *options)
            indptr = read_npy(f"{path}-made/indptr.npy")
            if (len(indptr) - 1, indptr[-1]) != want or note not in told:
                fail(f"{texts}: {len(indptr) - 1} vertices and {indptr[-1]} entries, expected {want}; no \"{note}\": {told}")

    counter = iter(range(1000))
    graph((3, 2), "line 1 is taken for a header: edges go from 'paper' to 'author'", ["0,1\n1,2\n", "paper,author\n", ""])
    graph((3, 2), "edges go from 'paper' to 'author'", ["0,1,2.5\n1,2,1\n", "paper,author,weight\n", ""])
    graph((3, 2), "relations are p, q, r", ["ann,bob\n", "bob,cy\n", ""])
    graph((4, 4), "edges go from 'paper' to 'author'", ["paper,author\n1,2\n", "2,p3\n4,p3\n", "p3,1\n"])
    graph((6, 4), "line 1 is no header but an edge", ["paper,author\n1,2\n", "paper,p2\n2,p3\n", ""])
    graph((6, 4), "line 1 is no header but an edge", ["to,from\nann,bob\n", "from,cy\nbob,dan\n", ""])
    graph((9, 5), 'the line "9 3" is taken for the size of the graph', ["9 3\n0 1\n1 2\n2 0\n", "3 4\n4 3\n", ""])
    graph((3, 3), "is KONECT's", ["% sym unweighted\n1 2\n2 3\n", "3 1\n", ""], "--first-vertex", "1")

    # beside the arrays or the table of its vertices; a relation without entries, and a vertex without edges
    names = NAMES + ["z"]
    for kind, write in (("arrays", write_arrays), ("text", write_text)):
        write(f"{folder}/in-{kind}", edges, names)
        with open(f"{folder}/in-{kind}/meta.json", "w") as file:
            json.dump({"relations": 6, "nodes": VERTICES + 1}, file)
        write_npy(f"{folder}/in-{kind}/labels.npy", "<i4", [v % 2 for v in range(VERTICES + 1)])
        run(starling, "convert", f"{folder}/in-{kind}", f"{folder}/made-{kind}", "--quiet")
        expect(kind, f"{folder}/made-{kind}", alone(merged(edges, weight=lambda weights: 1.0)), relations=6)
        if len(read_npy(f"{folder}/made-{kind}/indptr.npy")) != VERTICES + 2:
            fail(f"{kind}: other vertices than labels.npy has rows")
    expect_same(f"{folder}/made-arrays", f"{folder}/made-text")
    expect_same(convert("both-made", f"{folder}/made-arrays", "--symmetrize"), convert("both-in", f"{folder}/in-arrays", "--symmetrize"))

    # without labels, other arrays and meta.json tell how many vertices there are; their numbers stay
    def numbered(want, text, name=None, kind="<i4", items=(), **meta):
        path = f"{folder}/numbered{next(counter)}"
        os.makedirs(f"{path}/relations")
        with open(f"{path}/meta.json", "w") as file:
            json.dump(meta, file)
        with open(f"{path}/relations/r.csv", "w") as file:
            file.write(text)
        if name:
            write_npy(f"{path}/{name}.npy", kind, items)
        made = convert(f"made{next(counter)}", path)
        indptr = read_npy(f"{made}/indptr.npy")
        if (len(indptr) - 1, read_npy(f"{made}/indices.npy")) != want or os.path.exists(f"{made}/vertex_ids.npy") != (name == "vertex_ids"):
            fail(f"{path}: {len(indptr) - 1} vertices, expected {want}")

    numbered((900, (3,)), "source,target\n3,899\n")
    numbered((6, (3,)), "3,5\n", "train_idx", "<i8", [4, 1])
    numbered((9000, (3,)), "3,8000\n", nodes=9000)
    for name, kind in (("vertex_ids", "<i4"), ("original_ids", "<i4"), ("val_mask", "|b1"), ("test_idx", "|b1")):
        numbered((9000, (3,)), "3,8000\n", name, kind, list(range(9000)) if "ids" in name else [1] * 9000)
    write_text(f"{folder}/tables", edges, names)
    with open(f"{folder}/tables/labels.csv", "w") as file:
        file.writelines(f"{v},{v % 2}\n" for v in range(VERTICES + 1))
    expect_same(f"{folder}/made-arrays", convert("made-tables", f"{folder}/tables"))
    told = run(starling, "info", f"{folder}/in-arrays")
    count = [sum(key[2] == r for key in merged(edges)) for r in range(6)]
    for word in (f"relations are {', '.join(names)}, in this order", f"{', '.join(map(str, count))} entries"):
        if word not in told:
            fail(f"info has no \"{word}\": {told}")


def refuse_files(starling, folder):
    edges = draw_edges(random.Random(8))
    counter = iter(range(1000))

    def files(write=write_arrays, directory=True, **text):
        path = f"{folder}/files{next(counter)}"
        write(path, edges)
        if directory:
            with open(f"{path}/meta.json", "w") as file:
                json.dump({}, file)
            write_npy(f"{path}/labels.npy", "<i4", [v % 2 for v in range(VERTICES)])
        for name, content in text.items():
            with open(f"{path}/{name.replace('__', '/').replace('_csv', '.csv')}", "w") as file:
                file.write(content)
        return path

    def wrong(word, path, *options):
        refused(word, starling, "convert", path, f"{folder}/none", *options)
        if not options:
            refused(word, starling, "train", path, "--model", "rgcn")

    def without(path):
        for name in os.listdir(f"{path}/relations"):
            os.remove(f"{path}/relations/{name}")
        return path

    for directory in (True, False):
        wrong("relations: has no file, expected NAME.csv or NAME.npy", without(files(directory=directory)))
        wrong("relations/x.pdf: is no file of a relation, expected NAME.csv", files(directory=directory, **{"relations__x.pdf": ""}))
        wrong("are both relation 'cites', expected one file", files(directory=directory, relations__cites_csv="0,1\n"))
        wrong("relations/e.csv: line 2: 'x.5'", files(directory=directory, relations__e_csv="0,1\n1,x.5\n") if directory else
              files(directory=directory, relations__e_csv="0,1\n1,x.5\n", labels_csv="".join(f"{v},{v % 2}\n" for v in range(VERTICES))))
    for path in (files(relations__e_csv=f"0,1\n{VERTICES},0\n"), files(write_text, relations__e_csv=f"0,1\n{VERTICES},0\n")):
        wrong(f"relations/e.csv: line 2: '{VERTICES}' is no vertex, expected one of 0 to {VERTICES - 1}, the rows of {path}/labels.npy", path)
    for items, shape, kind, word in (([0, 1, VERTICES, 0], (2, 2), "<i4", f"row 1: vertex {VERTICES}, expected one of 0 to {VERTICES - 1}"),
                                     ([0, -1], (1, 2), "<i4", "row 0: vertex -1, expected"), ([0, 1, 2], (1, 3), "<i4", "of shape (edges, 2)"),
                                     ([0, 1], (2,), "<i4", "of shape (edges, 2)"), ([0, 1], (1, 2), "<f4", "expected whole numbers")):
        path = files()
        write_npy(f"{path}/relations/e.npy", kind, items, *shape)
        wrong(f"relations/e.npy: {word}" if word[0] == "r" else word, path)
    for name in ("edge_types", "indptr", "weights"):
        path = files()
        write_npy(f"{path}/{name}.npy", "<i4", [0])
        wrong(f"{name}.npy: comes beside the folder relations, expected one of them", path)
    for key, value in (("relations", 6), ("nodes", VERTICES + 1), ("nnz", 1)):
        path = files()
        with open(f"{path}/meta.json", "w") as file:
            json.dump({key: value}, file)
        wrong(f"as \"{key}\", expected {value} as in meta.json", path, "--quiet")
    wrong("edges.csv: comes beside the folder relations", files(directory=False, edges_csv="0,1\n"))
    wrong("train.csv: comes without a list of the vertices", files(directory=False, train_csv="0\n"))
    wrong("has numbers, expected text: vertices are called by names", files(directory=False, relations__e_csv="ann,bob\nbob,cy\n"))
    path = files(**{"meta.json": '{"nodes": 2000000000}'})
    os.remove(f"{path}/labels.npy")
    wrong("has 2000000000 vertices and 1", path)
    for line, word in (("ann,bob\nbob,cy\n", "e.csv: line 2: 'bob' is no vertex, expected one of the numbers of vertices, from 0 on"),
                       ("3,80000\n", "vertices up to 80000, expected \"nodes\" in meta.json")):
        path = files(relations__e_csv=line)
        os.remove(f"{path}/labels.npy")
        wrong(word, path)
    path = files(relations__e_csv="source,target,weight\n0,1,3e38\n0,1,3e38\n")
    refused(f"{path}/relations: row 1, column 0 is inf", starling, "convert", path, f"{folder}/none", "--quiet")
    konect = "% sym unweighted\n1 2\n2 3\n"
    wrong("line 1 says that vertices count from 1 (KONECT), expected --first-vertex 1", files(directory=False, relations__e_csv=konect))
    wrong("line 1 says that vertices count from 1 (KONECT), expected numbers from 0", files(relations__e_csv=konect))
    wrong("e.csv: these are labels, not edges", files(directory=False, relations__e_csv="".join(f"{v},{v % 3 // 2}\n" for v in range(12))))
    wrong("expected no --edge-types", files(write_text, directory=False), "--edge-types", "rel")
    wrong("is an array, expected no --edge-features", files(directory=False), "--edge-features", "a")
    wrong("expected 1 or more (--first-vertex)", files(directory=False), "--first-vertex", "1")


# ---- Convert ----

def convert_all(starling, folder):
    draw = random.Random(5)
    edges = draw_edges(draw)
    sums = merged(edges)
    several = [key for key in sums if sum(key[:2] == other[:2] for other in sums) > 1]
    if len(several) < 20 or not any(r == c for r, c, _ in several) or len(sums) == len(edges):
        fail("too few edges between the same vertices")
    counter = iter(range(1000))

    def check(name, source, want, *options, relations=RELATIONS):
        target = f"{folder}/out{next(counter)}"
        run(starling, "convert", source, target, *options, "--quiet")
        expect(name, target, want, relations)
        return target

    # edge lists, with and without features and weights
    weighted, plain = f"{folder}/weighted.csv", f"{folder}/plain.csv"
    with open(weighted, "w") as file:
        file.write("a,source,target,rel,weight,b\n")
        file.writelines(f"{f[0]},{u},{v},{r},{w},{f[1]}\n" for u, v, r, f, w in edges)
    with open(plain, "w") as file:
        file.write("rel,source,target\n")
        file.writelines(f"{r},{u},{v}\n" for u, v, r, _, _ in edges)
    types, both = ("--edge-types", "rel"), ("--edge-types", "rel", "--edge-features", "a,b")
    once = merged(edges, False, lambda weights: 1.0)
    counted = merged(edges, False, lambda weights: float(len(weights)))
    lists = ((weighted, both, sums), (weighted, types, alone(sums)), (weighted, (*both, "--weights", "none"), unweighted(sums)),
             (plain, types, once), (plain, (*types, "--duplicates", "sum"), counted))
    for source, options, want in lists:
        name = f"{os.path.basename(source)} {' '.join(options)}"
        made = check(name, source, want, *options)
        if os.path.exists(f"{made}/edge_features.npy") != (options[2:3] == ("--edge-features",)):
            fail(f"{name}: features of edges")
        if os.path.exists(f"{made}/weights.npy") != any(value[-1] != 1 for value in want.values()):
            fail(f"{name}: weights")
        check(f"{name} again", made, want)
        for way in ("max", "sum", "mean"):
            check(f"{name} --symmetrize {way}", source, both_ways(want), *options, "--symmetrize", way, relations=2 * RELATIONS)
        check(f"{name} --reverse", source, turned(want), *options, "--reverse")
        check(f"{name} --reverse --symmetrize", source, both_ways(turned(want)), *options, "--reverse", "--symmetrize", relations=2 * RELATIONS)
        for order in ("random", "rcm", "degree"):
            check(f"{name} --order {order}", source, want, *options, "--order", order)
    convert_files(starling, folder, edges)
    # relations that no edge has at the end of the numbers make no more of them
    with open(f"{folder}/far.csv", "w") as file:
        file.write("source,target,rel\n0,1,2\n1,2,65535\n22,0,2.0\n")
    far = {(1, 0, 2): [1.0], (2, 1, 65535): [1.0], (0, 22, 2): [1.0]}
    far_folder = check("the last relation", f"{folder}/far.csv", far, "--edge-types", "rel", relations=65536)
    refused("relations with as many reverse ones", starling, "convert", far_folder, f"{folder}/none", "--symmetrize")

    # folders: sorted, other types, unsorted, orders, more relations than are there, and there and back
    number = 0
    for kind in ("<i8", "<i4", "|u1"):
        for shuffled in (None, draw):
            for features, weights, relations in ((True, True, 9), (True, False, None), (False, True, None), (False, False, RELATIONS)):
                path, number = f"{folder}/folder{number}", number + 1
                want = sums if weights else unweighted(sums)
                write_folder(path, want, kind, features, shuffled, **{"relations": relations} if relations else {})
                name, all_of = f"{path} of {kind}{', unsorted' if shuffled else ''}", relations or RELATIONS
                want = want if features else alone(want)
                made = check(name, path, want, relations=all_of)
                check(f"{name} --symmetrize", path, both_ways(want, all_of), "--symmetrize", relations=2 * all_of)
                back = check(f"{name} --reverse", path, turned(want), "--reverse", relations=all_of)
                again = check(f"{name} --reverse, again", back, want, "--reverse", relations=all_of)
                for file in os.listdir(made):
                    with open(f"{made}/{file}", "rb") as one, open(f"{again}/{file}", "rb") as other:
                        if file != "meta.json" and one.read() != other.read():
                            fail(f"{name}: {file} is not the same there and back")
                check(f"{name} --duplicates sum", path, want, "--duplicates", "sum", relations=all_of)
                for order in ("random", "rcm", "degree"):
                    ordered = check(f"{name} --order {order}", path, want, "--order", order, relations=all_of)
                    check(f"{name} --order {order}, again", ordered, want, "--order", "random", "--seed", "4", relations=all_of)
    told = run(starling, "info", f"{folder}/folder0")
    if not any(line.split() == ["relations", "9"] for line in told.splitlines()) or \
            not any(line.split() == ["edge", "features", str(WIDTH)] for line in told.splitlines()):
        fail(f"info: {told}")

    # a symmetric adjacency, whose relations are not: turning it round changes it
    lopsided = {}
    for r, c, t in sums:
        lopsided[r, c, t] = [1.0]
        lopsided[c, r, t if r == c else (t + 1) % RELATIONS] = [1.0]
    write_folder(f"{folder}/lopsided", {key: [0.0] * WIDTH + [1.0] for key in lopsided}, features=False)
    check("--reverse of a symmetric adjacency", f"{folder}/lopsided", turned(lopsided), "--reverse")
    check("--symmetrize of a symmetric adjacency", f"{folder}/lopsided", both_ways(lopsided), "--symmetrize", relations=2 * RELATIONS)

    # files have no relations: a note says so, and what is left is a graph
    for end in (".txt", ".mtx", ".npz"):
        if "left out" not in run(starling, "convert", f"{folder}/folder0", f"{folder}/flat{end}"):
            fail(f"no note says that {end} loses relations")
        run(starling, "convert", f"{folder}/flat{end}", f"{folder}/flat{end}-read", "--quiet")
        indptr, indices = (read_npy(f"{folder}/flat{end}-read/{name}.npy") for name in ("indptr", "indices"))
        if {(r, indices[e]) for r in range(VERTICES) for e in range(indptr[r], indptr[r + 1])} != {key[:2] for key in sums}:
            fail(f"{end} has other edges")


# ---- Refusals ----

def refuse_all(starling, folder):
    edges = merged(draw_edges(random.Random(6)))
    refuse_files(starling, folder)
    counter = iter(range(1000))

    def copy(name, items=None, kind="<i4", shape=(), **meta):
        path = f"{folder}/{name}{next(counter)}"
        stored = write_folder(path, unweighted(edges), **meta)
        if items:
            write_npy(f"{path}/edge_types.npy", kind, items([r for _, _, r in stored]), *shape)
        return path

    def changed(at, value):
        return lambda types: types[:at] + [value] + types[at + 1:]

    def wrong(word, path, *options):
        refused(word, starling, "convert", path, f"{folder}/none", *options)
        refused(word, starling, "train", path, "--model", "rgcn")

    some = len(edges) // 2
    for kind, value in (("<i4", -1), ("<i8", -1), ("<i8", 1 << 40), ("<i4", 65536), ("<i8", -(1 << 62))):
        wrong(f"item {some} is relation {value}, expected 0 to 65535", copy("number", changed(some, value), kind))
    wrong("expected integers", copy("floats", lambda types: types, "<f4"))
    wrong("expected integers", copy("doubles", lambda types: types, "<f8"))
    wrong(f"has {len(edges) - 1} items, expected {len(edges)}", copy("short", lambda types: types[:-1]))
    wrong(f"has {len(edges) + 1} items, expected {len(edges)}", copy("long", lambda types: types + [0]))
    wrong("edge_types.npy", copy("flat", lambda types: types, shape=(len(edges), 1)))
    for relations in (4, 1):
        wrong(f"expected 0 to {relations - 1}", copy("few", relations=relations))
    for relations in (-1, 2.5, "5", 65537):
        wrong("relations", copy("meta", relations=relations))

    # an edge that is there twice with one relation, next to one another and apart, and a row like it that is fine
    for columns, types in (([1, 1], [3, 3]), ([1, 2, 1], [3, 3, 3]), ([1, 1, 1, 1], [0, 2, 1, 2])):
        for features in (True, False):
            path = f"{folder}/twice{next(counter)}"
            write_folder(path, {(5, c, r): [1.0] * (WIDTH + 1) for r, c in enumerate(columns)}, features=features)
            write_npy(f"{path}/indices.npy", "<i4", columns)
            write_npy(f"{path}/edge_types.npy", "<i4", types)
            for duplicates in ("one", "sum"):
                refused("row 5 has column 1 twice with one relation", starling, "convert", path, f"{folder}/none", "--duplicates", duplicates)
            if not features:
                write_npy(f"{path}/labels.npy", "<i4", [v % 2 for v in range(VERTICES)])
                write_npy(f"{path}/train_idx.npy", "<i8", list(range(12)))
                word = "twice with one relation" if columns == sorted(columns) else "of row 5 do not ascend"
                refused(word, starling, "train", path, "--model", "rgcn")
            write_npy(f"{path}/edge_types.npy", "<i4", list(range(len(types))))
            run(starling, "convert", path, f"{path}-fine", "--quiet")

    # edge lists
    def listed(name, lines):
        with open(f"{folder}/{name}.csv", "w") as file:
            file.write("source,target,rel,weight,a\n" + lines)
        return f"{folder}/{name}.csv"

    fine = listed("fine", "0,1,0,1,1\n1,2,1,1,2\n")
    for word, *options in (("column 'other' is not there", "other"), ("expected one column", "rel,weight"), ("expected one column", "rel,a"),
                           ("end of edges", "source"), ("named twice", "rel,rel"), ("is not there", ""),
                           ("named twice", "a", "--edge-features", "a"), ("expected one column", "rel,weight", "--edge-features", "a")):
        refused(word, starling, "convert", fine, f"{folder}/none", "--edge-types", *options)
    for relation in ("1.5", "-1", "likes", "nan", "inf", "65536", "1e30", "", "-0.5"):
        path = listed("wrong", f"0,1,0,1,1\n1,2,{relation},1,2\n")
        refused(f"line 3: relation '{relation}', expected a whole number from 0 to 65535 (--edge-types)",
                starling, "convert", path, f"{folder}/none", "--edge-types", "rel")
    for text, option in (("0,1,0\n1,2,1\n", "2"), ("0,1,0\n1,2,1\n", "rel")):
        with open(f"{folder}/bare.csv", "w") as file:
            file.write(text)
        refused("expected a header", starling, "convert", f"{folder}/bare.csv", f"{folder}/none", "--edge-types", option)
    refused("no edge list", starling, "convert", copy("folder"), f"{folder}/none", "--edge-types", "rel")


# ---- Train ----

def losses(log):
    with open(log) as file:
        return [json.loads(line).get("loss") for line in file if '"loss"' in line and '"epoch"' in line]


def read_tensors(checkpoint):
    with open(checkpoint, "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {name: struct.unpack(f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 4}f", data[slice(*t["data_offsets"])])
            for name, t in head.items() if name != "__metadata__" and t["dtype"] == "F32"}


def formula(tensors, edges, classes):
    """Logits of a layer on the identity: root(v) + Σ_r mean of W_r(u) over the neighbours u of relation r + b."""
    root, weight, bias = (tensors[f"layer.0.{name}"] for name in ("root", "weight", "bias"))
    count = {}
    for v, _, r in edges:
        count[v, r] = count.get((v, r), 0) + 1
    out = [root[v * classes + k] + bias[k] for v in range(VERTICES) for k in range(classes)]
    for v, u, r in edges:
        for k in range(classes):
            out[v * classes + k] += weight[(r * VERTICES + u) * classes + k] / count[v, r]
    return out


def train_all(starling, folder):
    draw = random.Random(7)
    edges = unweighted(merged(draw_edges(draw)))
    counter = iter(range(1000))

    def dataset(name, edges, *left_out, weights=None, **more):
        path = f"{folder}/{name}"
        write_folder(path, edges, **more)
        write_npy(f"{path}/labels.npy", "<i4", [v % 2 for v in range(VERTICES)])
        write_npy(f"{path}/train_idx.npy", "<i8", list(range(12)))
        write_npy(f"{path}/val_idx.npy", "<i8", list(range(12, 20)))
        for array in left_out:
            os.remove(f"{path}/{array}.npy")
        if weights:
            write_npy(f"{path}/weights.npy", "<f4", weights)
        return path

    def train(path, *options, launcher=()):
        log = f"{folder}/log{next(counter)}"
        run(*launcher, starling, "train", path, "--hidden", "4", "--epochs", "5", "--patience", "0", "--dropout", "0.2", "--quiet", "--log", log, *options)
        found = losses(log)
        if len(found) < 5 or any(not (isinstance(x, float) and 0 < x < 100) for x in found):
            fail(f"{path} {options}: losses {found}")
        return found

    def logits(model, path):
        run(starling, "predict", model, path, "--logits", f"{folder}/logits.npy", "--quiet")
        return read_npy(f"{folder}/logits.npy")

    # relations count; features, weights of 1, and the order and the type of the files do not
    rgcn = ("--model", "rgcn")
    related = dataset("related", edges)
    want = train(related, *rgcn)
    for name, *left_out, more in (("types-alone", "edge_features", {}), ("ones", {"weights": [1.0] * len(edges)}),
                                  ("wide", {"kind": "<i8"}), ("narrow", {"kind": "|u1"}), ("meta", {"relations": RELATIONS})):
        if train(dataset(name, edges, *left_out, **more), *rgcn) != want:
            fail(f"{name}: other losses of --model rgcn")
    files = dataset("files", edges, "indptr", "indices", "edge_types", "edge_features")
    write_arrays(files, [(c, r, t) for r, c, t in edges])
    if train(files, *rgcn) != want:
        fail("a file for each relation: other losses of --model rgcn")
    if os.environ.get("MPIRUN"):
        found = train(files, *rgcn, "--workers", "1", launcher=(os.environ["MPIRUN"], "-n", "2"))
        if len(found) != len(want) or any(abs(a - b) > 1e-4 * b for a, b in zip(found, want)):
            fail(f"a file for each relation, on 2 ranks: losses {found}, expected {want}")
    else:
        print("skip  2 ranks: no MPI")
    refused("do not ascend", starling, "train", dataset("shuffled", edges, shuffled=draw), *rgcn)
    # entries of one column may have any order
    falling = train(dataset("falling", edges, order=lambda key: (key[0], key[1], -key[2])), *rgcn)
    if any(abs(a - b) > 1e-4 * a for a, b in zip(falling, want)):
        fail(f"falling relations have losses {falling}, expected {want}")
    other = {(r, c, (t + 1) % RELATIONS if (r + c) % 3 == 0 else t): f for (r, c, t), f in edges.items()}
    if train(dataset("other", other), *rgcn) == want:
        fail("--model rgcn does not read relations")

    # models that do not know relations: an edge that is there several times is one
    simple = {}
    for (r, c, t), f in edges.items():
        simple.setdefault((r, c), ((r, c, t), f))
    simple = dict(simple.values())

    multi, single = related, dataset("single", simple, "edge_types", "edge_features")
    for model in ("gcn", "sage", "gin", "gat --heads 2 --edge-features none"):
        options = ("--model", *model.split())
        if train(multi, *options) != train(single, *options):
            fail(f"{model}: relations change the losses")
    # of edges that are there once, attention reads the features alone
    typed, bare = dataset("typed", simple), dataset("bare", simple, "edge_types")
    for model in ("gat --heads 2", "gatv2 --heads 2", "transformer --heads 2", "gine"):
        options = ("--model", *model.split())
        if train(typed, *options) != train(bare, *options):
            fail(f"{model}: relations change the losses of edges with features")
        if train(multi, *options) == train(typed, *options):
            fail(f"{model}: of several edges between two vertices, only one has features")

    # Relations that are the same both ways: a matrix is its transpose, but factors of its rows are not those of its
    # columns. An edge to a vertex that nobody reads ends the symmetry, and changes no loss.
    both = {(a, b, t): [0.0] * WIDTH + [1.0] for r, c, t in edges if VERTICES - 1 not in (r, c) for a, b in ((r, c), (c, r))}
    one_way = {**both, (VERTICES - 1, 0, 0): [0.0] * WIDTH + [1.0]}
    for name in ("both", "one-way"):
        dataset(name, both if name == "both" else one_way, "edge_features", relations=RELATIONS)
    found = [train(f"{folder}/{name}", *rgcn, "--dropout", "0", "--lr", "0.1") for name in ("both", "one-way")]
    if any(abs(a - b) > 1e-5 * b for a, b in zip(*found)):
        fail(f"losses of an undirected graph are {found[0]}, expected {found[1]}")

    # A batch of clusters divides by the neighbours that are in it: edges between two clusters change no loss.
    half = VERTICES // 2
    cliques = {(r, c, (r + c) % 2): [0.0] * WIDTH + [1.0] for r in range(VERTICES) for c in range(VERTICES) if (r < half) == (c < half) and r != c}
    bridges = {(r, c, t): [0.0] * WIDTH + [1.0] for r, c in ((1, half + 1), (half + 2, 2)) for t in range(2)}
    found = [train(dataset(f"cliques{k}", {**cliques, **more}, "edge_features", relations=2), *rgcn, "--batches", "clusters:2,1", "--eval-every", "-1",
                   "--keep", "last", "--dropout", "0", "--optimizer", "sgd", "--lr", "1e-9") for k, more in enumerate(({}, bridges))]
    if any(abs(a - b) > 1e-5 * b for a, b in zip(*found)) or len(found[0]) < 5:
        fail(f"losses of clusters without edges between them are {found[0]}, with edges {found[1]}")
    refused("--bases has numbers of relations", starling, "train", related, *rgcn, "--bases", "2", "--submodels", "2")
    run(starling, "train", related, *rgcn, "--bases", "2", "--submodels", "2", "--share", "copies", "--epochs", "4", "--quiet")

    # rows are not cut for columns of ranks: nothing is planned with some
    plan = run(starling, "plan", related, *rgcn, "--ranks", "4")
    grids = [line.split()[0] for line in plan.splitlines() if line.endswith("  yes")]
    if sorted(grids) != ["1.5d", "1.5d", "1d", "cover", "halo", "vertex-cut"]:
        fail(f"a plan of 4 ranks: {plan}")

    # who lacks what
    missing = dataset("missing", simple, "edge_types")
    refused("have no relations", starling, "train", missing, *rgcn)
    refused("have no relations", starling, "train", single, *rgcn)
    refused("weights and relations", starling, "train", dataset("weighted", edges, weights=[1.0] * (len(edges) - 1) + [1.5]), *rgcn)
    refused("--precision bf16", starling, "train", related, *rgcn, "--precision", "bf16")
    refused("does not have it", starling, "train", related, *rgcn, "--edge-features", "none")

    # logits are those of the formula. Some rows are long, of more than 256 entries; some relations are in those alone
    long = dict(edges)
    for v in range(3, 21, 2):
        long.update({(v, u, r): [0.0] * WIDTH + [1.0] for u in range(VERTICES) for r in range(20) if draw.random() < 0.8})
    for name, edges_of, relations in (("formula", edges, RELATIONS), ("formula-long", long, 20), ("formula-more", long, 700)):
        path, model = dataset(name, edges_of, relations=relations), f"{folder}/{name}.ck"
        train(path, *rgcn, "--layers", "1", "--bias", "--lr", "0.1", "--checkpoint", model)
        got, want_of = logits(model, path), formula(read_tensors(model), edges_of, 2)
        spread = max(want_of) - min(want_of)
        if len(got) != len(want_of) or spread < 0.1 or any(abs(a - b) > 1e-4 * spread for a, b in zip(got, want_of)):
            fail(f"{name}: logits {got}, expected {want_of}")

    # a model goes on; its checkpoint knows how many relations it has
    whole = train(related, *rgcn, "--checkpoint", f"{folder}/whole")
    train_log = f"{folder}/log{next(counter)}"
    run(starling, "train", related, *rgcn, "--hidden", "4", "--epochs", "5", "--patience", "0", "--dropout", "0.2", "--quiet",
        "--log", train_log, "--stop-after", "3", "--checkpoint", f"{folder}/part")
    if losses(train_log) != whole[:3]:
        fail(f"--stop-after 3: {losses(train_log)}, expected {whole[:3]}")
    log = f"{folder}/log{next(counter)}"
    run(starling, "train", related, "--resume", f"{folder}/part", "--quiet", "--log", log, "--checkpoint", f"{folder}/part")
    if losses(log) != whole[3:]:
        fail(f"went on with {losses(log)}, expected {whole[3:]}")
    if logits(f"{folder}/part", related) != logits(f"{folder}/whole", related):
        fail("a model that went on predicts something else")

    # fewer relations, more, and none
    few = {key: f for key, f in edges.items() if key[2] < 3}
    told = dataset("few-told", few, relations=RELATIONS)
    if logits(f"{folder}/whole", dataset("few", few)) != logits(f"{folder}/whole", told):
        fail("fewer relations are other relations")
    more = dataset("more", {**edges, (3, 7, RELATIONS): [0.0] * WIDTH + [1.0]})
    for path in (more, dataset("more-told", edges, relations=RELATIONS + 1)):
        refused(f"has {RELATIONS} relations, and", starling, "predict", f"{folder}/whole", path)
        refused("expected as many or fewer", starling, "train", path, "--resume", f"{folder}/whole", "--epochs", "9")
    refused("have no relations", starling, "predict", f"{folder}/whole", missing)
    refused("have no relations", starling, "train", missing, "--resume", f"{folder}/whole", "--epochs", "9")
    train(related, "--model", "gcn", "--checkpoint", f"{folder}/gcn")
    if logits(f"{folder}/gcn", related) != logits(f"{folder}/gcn", single):
        fail("a gcn reads relations")


if __name__ == "__main__":
    {"convert": convert_all, "refuse": refuse_all, "train": train_all}[sys.argv[1]](sys.argv[2], sys.argv[3])
