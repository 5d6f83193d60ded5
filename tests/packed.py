"""Reads small compressed files of much text: the memory stays within the promise, and a sentence says so.

    python3 packed.py STARLING FOLDER

The promise of docs/RELIABILITY.md: 1,100 times the input and 96 MiB. One line per case.
"""
import gzip, os, subprocess, sys

STARLING, TOP = sys.argv[1:3]
MIB = 1 << 20


def write(path, line, megabytes, head=b""):
    """A file of `megabytes` MiB that repeats a line; one gzip member for each of a few MiB."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    piece = gzip.compress(line * (4 * MIB // len(line)), 9)
    with open(path, "wb") as file:
        file.write(gzip.compress(head) if head else b"")
        file.write(piece * (megabytes // 4))


def write_rows(path, columns, rows, cell, numbered):
    """A compressed table whose cells are all alike; `numbered`: a header, and rows begin with their number."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with gzip.open(path, "wb", 9) as file:
        if numbered:
            file.write(b"id," + b",".join(b"f%d" % f for f in range(columns)) + b"\n")
        for row in range(rows):
            file.write((b"%d," % row if numbered else b"") + b",".join([cell] * columns) + b"\n")


def plain(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text)


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def peak(arguments):
    """Exit status, words on stderr, and the most memory in bytes."""
    process = subprocess.Popen([STARLING] + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    words = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    return os.waitstatus_to_exitcode(status), words, usage.ru_maxrss * 1024


def check(name, path, refused, *arguments):
    """Reads a file or folder; `refused` says whether a sentence must refuse it."""
    path = os.path.join(TOP, path)
    status, words, most = peak([arguments[0] if arguments else "info", path, *arguments[1:]])
    bound = 1100 * size_of(path) + 96 * MIB
    sentences = [line for line in words.splitlines() if line.startswith("starling: ") and "compressed bytes are more than" in line]
    good = most <= bound and (status == 1 and len(sentences) == 1 if refused else status == 0)
    print(f"{'ok  ' if good else 'FAIL'}  {name}: {size_of(path)} bytes take {most / MIB:.0f} MiB, the bound is {bound / MIB:.0f}")
    if not good:
        print(f"          status {status}: {words}")
    return good


folder = os.path.join(TOP, "written")
write(f"{TOP}/numbers.txt.gz", b"0 1\n", 80)
plain(f"{TOP}/few.txt.gz", gzip.compress(b"0 1\n" * (1 << 18)))
write(f"{TOP}/weights.txt.gz", b"0 1 1\n", 80)
write(f"{TOP}/names.txt.gz", b"a b\n", 60)
write(f"{TOP}/far.txt.gz", b"0 9999999999\n", 80)
write(f"{TOP}/graph.metis.gz", b"2 2 2 2 ", 80, b"2 1\n")
write(f"{TOP}/graph.mtx.gz", b"2 1\n", 80, b"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 20971520\n")
write(f"{TOP}/tables/edges.csv.gz", b"a,b\n", 24)
plain(f"{TOP}/tables/nodes.csv", b"id,label\na,0\nb,1\n")
write_rows(f"{TOP}/zeros/nodes.csv.gz", 4096, 20000, b"0", True)
write_rows(f"{TOP}/empty/nodes.csv.gz", 4096, 20000, b"", True)
write(f"{TOP}/wide/features.txt.gz", b" 1:1 2:1", 80, b"0")
for name in ("zeros", "empty", "wide"):
    plain(f"{TOP}/{name}/edges.csv", b"0,1\n")
write_rows(f"{TOP}/ogb/raw/node-feat.csv.gz", 2048, 51200, b"0", False)
write(f"{TOP}/ogb/raw/edge.csv.gz", b"0,1\n", 4)
plain(f"{TOP}/ogb/raw/num-node-list.csv", b"51200\n")
plain(f"{TOP}/ogb/raw/num-edge-list.csv", b"1048576\n")
plain(f"{TOP}/long.txt", b"a" * 20000 + b" b\n" + b"".join(b"n%d n%d\n" % (k, k + 1) for k in range(20000)))

good = [
    check("a few lines", "few.txt.gz", False),
    check("numbers", "numbers.txt.gz", True),
    check("numbers, symmetrized", "numbers.txt.gz", True, "convert", folder, "--symmetrize", "max"),
    check("numbers, counted", "numbers.txt.gz", True, "convert", folder, "--duplicates", "sum"),
    check("weights", "weights.txt.gz", True),
    check("names", "names.txt.gz", True),
    check("large numbers", "far.txt.gz", True),
    check("METIS", "graph.metis.gz", True),
    check("Matrix Market", "graph.mtx.gz", True),
    check("tables of edges", "tables", True),
    check("tables of zeros", "zeros", True),
    check("tables of empty cells", "empty", True, "convert", folder, "--empty-cells", "mean"),
    check("sparse features", "wide", True),
    check("OGB", "ogb", True),
    check("a long name", "long.txt", False),
]
print(f"{len(good)} cases, {good.count(False)} failed, 0 skipped")
sys.exit(0 if all(good) else 1)
