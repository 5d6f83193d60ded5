#!/usr/bin/env python3
"""How fast every format is read, on one core: a line of a table per format.

    tests/formats.py build/starling [SCALE [FOLDER]]

Makes an R-MAT graph of 2^SCALE vertices (16) with 32 features, writes it in every format into FOLDER, and
converts each to a directory. MB are those of the input (of text: before compression), MB/s over the wall time of the whole
conversion, writing included; peak memory is the process's. Needs nothing but Python."""
import array, gzip, json, os, shutil, struct, subprocess, sys, tempfile, time, zipfile

starling = os.path.abspath(sys.argv[1])
scale = sys.argv[2] if len(sys.argv) > 2 else "16"
top = tempfile.mkdtemp(prefix="formats-", dir=sys.argv[3] if len(sys.argv) > 3 else None)


def load(name, code):
    with open(f"{top}/base/{name}.npy", "rb") as file:
        file.seek(8)
        file.seek(10 + struct.unpack("<H", file.read(2))[0])
        return array.array(code, file.read())


def write(path, chunks):
    """Text, gzipped where its name ends so; its bytes before that."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    total = 0
    with (gzip.open(path, "wt", compresslevel=1) if path.endswith(".gz") else open(path, "w")) as file:
        for chunk in chunks:
            total += len(chunk)
            file.write(chunk)
    return total


def measure(commands, results):
    """A process of its own, which is small: a child's peak memory starts with its parent's."""
    for line in commands:
        arguments = json.loads(line)
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execv(starling, arguments)
        _, status, usage = os.wait4(pid, 0)
        json.dump([status, time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss], results)
        results.write("\n")
        results.flush()


def convert(name, source, size, *options):
    to_measurer.write(json.dumps([starling, "convert", source, f"{top}/out", "--quiet", *options]) + "\n")
    to_measurer.flush()
    status, seconds, cpu, peak = json.loads(from_measurer.readline())
    if status:
        sys.exit(f"{name}: exit status {status}")
    print(f"| {name} | {size / 1e6:.0f} | {size / 1e6 / seconds:.0f} | {size / 1e6 / cpu:.0f} | {peak / 1024:.0f} |",
          flush=True)
    shutil.rmtree(f"{top}/out")


def mat_element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def mat_file(n, indptr, indices):
    body = mat_element(6, struct.pack("<II", 5, len(indices))) + mat_element(5, struct.pack("<ii", n, n))
    body += mat_element(1, b"network") + mat_element(5, indices.tobytes())
    body += mat_element(5, array.array("i", indptr).tobytes())
    body += mat_element(9, array.array("d", [1.0]).tobytes() * len(indices))
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM" + struct.pack("<II", 14, len(body)) + body


def npy_file(values, descr, shape):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + values.tobytes()


in_end, out_end = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(in_end[1])
    measure(os.fdopen(in_end[0]), os.fdopen(out_end[1], "w"))
    os._exit(0)
to_measurer, from_measurer = os.fdopen(in_end[1], "w"), os.fdopen(out_end[0])

subprocess.run([starling, "generate", "rmat", f"{top}/base", "--scale", scale, "--features", "32", "--classes", "10",
                "--quiet"], check=True)
indptr, indices = load("indptr", "q"), load("indices", "i")
features, labels = load("features", "f"), load("labels", "i")
n, width = len(indptr) - 1, len(features) // (len(indptr) - 1)
rows = [[format(x, ".6g") for x in features[v * width:(v + 1) * width]] for v in range(n)]
splits = {name: load(f"{name}_idx", "q") for name in ("train", "val", "test")}


def lines_of(between, begin=0):
    for v in range(n):
        start = f"{v + begin}{between}"
        yield "".join(f"{start}{w + begin}\n" for w in indices[indptr[v]:indptr[v + 1]])


print("| format | MB | MB/s | MB per second of CPU | peak MiB |\n|---|---|---|---|---|")
for end, name in (("txt", "edge list"), ("mtx", "Matrix Market"), ("graph", "METIS"), ("npz", "NumPy archive")):
    subprocess.run([starling, "convert", f"{top}/base", f"{top}/graph.{end}", "--quiet"], check=True)
    convert(name, f"{top}/graph.{end}", os.path.getsize(f"{top}/graph.{end}"))

size = write(f"{top}/graph.txt.gz", lines_of(" "))
convert("edge list, gzipped", f"{top}/graph.txt.gz", size)

with open(f"{top}/graph.mat", "wb") as file:
    file.write(mat_file(n, indptr, indices))
convert("MATLAB", f"{top}/graph.mat", os.path.getsize(f"{top}/graph.mat"))

for gz in ("", ".gz"):
    ogb = f"{top}/ogb{gz}"
    size = write(f"{ogb}/raw/edge.csv{gz}", lines_of(","))
    size += write(f"{ogb}/raw/node-feat.csv{gz}", (",".join(row) + "\n" for row in rows))
    size += write(f"{ogb}/raw/node-label.csv{gz}", (f"{label}\n" for label in labels))
    write(f"{ogb}/raw/num-node-list.csv{gz}", [f"{n}\n"])
    write(f"{ogb}/raw/num-edge-list.csv{gz}", [f"{len(indices)}\n"])
    for split, name in (("train", "train"), ("val", "valid"), ("test", "test")):
        size += write(f"{ogb}/split/random/{name}.csv{gz}", (f"{v}\n" for v in splits[split]))
    convert("OGB folder" + (", gzipped" if gz else ""), ogb, size)

arrays = f"{top}/arrays"
os.makedirs(f"{arrays}/raw")
ends = array.array("q")
for v in range(n):
    ends.extend([v] * (indptr[v + 1] - indptr[v]))
ends.extend(array.array("q", indices))
numbers = [npy_file(value, code, (1,)) for value, code in ((array.array("q", [n]), "<i8"), (array.array("q", [len(indices)]), "<i8"))]
with zipfile.ZipFile(f"{arrays}/raw/data.npz", "w") as file:
    file.writestr("edge_index.npy", npy_file(ends, "<i8", (2, len(indices))))
    file.writestr("node_feat.npy", npy_file(features, "<f4", (n, width)))
    file.writestr("num_nodes_list.npy", numbers[0])
    file.writestr("num_edges_list.npy", numbers[1])
with zipfile.ZipFile(f"{arrays}/raw/node-label.npz", "w") as file:
    file.writestr("node_label.npy", npy_file(array.array("f", labels), "<f4", (n, 1)))
convert("OGB folder of arrays", arrays, sum(entry.stat().st_size for entry in os.scandir(f"{arrays}/raw")))

saint = f"{top}/saint"
os.makedirs(saint)
subprocess.run([starling, "convert", f"{top}/graph.mtx", f"{saint}/adj_full.npz", "--quiet"], check=True)
shutil.copy(f"{top}/base/features.npy", f"{saint}/feats.npy")
write(f"{saint}/class_map.json",
      ["{" + ", ".join(f'"{v}": [{", ".join("1" if c == labels[v] else "0" for c in range(50))}]' for v in range(n)) + "}"])
write(f"{saint}/role.json", [json.dumps({"tr": list(splits["train"]), "va": list(splits["val"]), "te": list(splits["test"])})])
convert("GraphSAINT folder", saint, sum(entry.stat().st_size for entry in os.scandir(saint)))

tables = f"{top}/tables"
split_of = {v: name for name, ids in splits.items() for v in ids}
header = "id," + ",".join(f"x{k}" for k in range(width)) + ",label,split\n"
size = write(f"{tables}/nodes.csv",
             [header] + [f"{v},{','.join(rows[v])},{labels[v]},{split_of.get(v, '')}\n" for v in range(n)])
size += write(f"{tables}/edges.csv", lines_of(","))
convert("CSV tables", tables, size)

named = f"{top}/named"
size = write(f"{named}/nodes.csv", [header] + [f"v{v},{','.join(rows[v])},{labels[v]},\n" for v in range(n)])
size += write(f"{named}/edges.csv", ("".join(f"v{v},v{w}\n" for w in indices[indptr[v]:indptr[v + 1]]) for v in range(n)))
convert("CSV tables, named vertices", named, size)

svm = f"{top}/svm"
size = write(f"{svm}/features.txt",
             (f"{v} " + " ".join(f"{k}:{x}" for k, x in enumerate(rows[v])) + "\n" for v in range(n)))
size += write(f"{svm}/labels.txt", (f"{v} {label}\n" for v, label in enumerate(labels)))
size += write(f"{svm}/edges.txt", lines_of(" "))
convert("LIBSVM features", svm, size)
shutil.rmtree(top)
