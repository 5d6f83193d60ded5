"""Writes inputs that the fuzzer starts from: small files that every reader takes.

    python3 seeds.py STARLING READERS KARATE FOLDER

READERS prints the readers and the pieces of their inputs (tests/fuzz/replay.c, `list`). FOLDER gets a
folder of each reader's inputs. A reader without an input is an error.
"""
import gzip
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib

STARLING, READERS, KARATE, FOLDER = (os.path.abspath(path) for path in sys.argv[1:5])


def npy(descr, shape, data, version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + data


def ints(*values, code="q", shape=None):
    kind = {"q": "<i8", "i": "<i4", "B": "|u1", "?": "|b1"}[code]
    return npy(kind, shape or (len(values),), struct.pack(f"<{len(values)}{code}", *values))


def floats(*values, code="f", shape=None):
    return npy({"f": "<f4", "d": "<f8"}[code], shape or (len(values),), struct.pack(f"<{len(values)}{code}", *values))


def text(value):
    return npy(f"|S{len(value)}", (), value.encode())


def archive(arrays, how=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as file:
        for name, data in arrays.items():
            file.writestr(name + ".npy", data)
    return out.getvalue()


def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matlab(name, rows, cols, *parts, kind=6):
    """A variable of MATLAB 5 with the class `kind`; without parts of its own, a dense matrix of doubles by columns."""
    return element(14, element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack("<ii", rows, cols)) +
                   element(1, name.encode()) + b"".join(parts))


def doubles(*values):
    return element(9, struct.pack(f"<{len(values)}d", *values))


def words(*values):
    return element(5, struct.pack(f"<{len(values)}i", *values))


def checkpoint():
    tensor = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    description = json.dumps({"configuration": {"hidden": 2, "model": "gcn"}, "epoch": 3})
    header = json.dumps({"__metadata__": {"format": "starling-checkpoint-1", "description": description},
                         "a": tensor, "b": dict(tensor, data_offsets=[16, 32])}).encode()
    return struct.pack("<Q", len(header)) + header + struct.pack("<8f", *range(8))


# A path of four vertices, with two features, two classes and splits.
INDPTR, INDICES, LABELS = (0, 1, 3, 5, 6), (1, 0, 2, 1, 3, 2), (0, 1, 0, 1)
FEATURES = (0.0, 1.0, 0.5, 0.0, 0.0, 2.0, 1.0, 1.0)
ROWS = (0, 1, 1, 2, 2, 3)
ONES = (1.0,) * 6
DENSE = [float((a, b) in zip(ROWS, INDICES)) for b in range(4) for a in range(4)]
EDGES = b"0 1\n1 2\n2 3\n"
SAINT = {"adj_full.npz:data": floats(*ONES), "adj_full.npz:indices": ints(*INDICES, code="i"),
         "adj_full.npz:indptr": ints(*INDPTR, code="i"), "adj_full.npz:shape": ints(4, 4), "adj_full.npz:format": text("csr")}
MATLAB = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM"
SPARSE = matlab("A", 4, 4, words(*INDICES), words(*INDPTR), doubles(*ONES), kind=5)
FILES = {
    "edge_list": [EDGES, b"# Nodes: 4\nsource,target,weight\n0,1,0.5\n1,2,2\n3,0,1\n", b"a\tb\nb\tc\n\xc3\xa9\t\"d\"\n",
                  b"4 3\n0 1\n1 2\n2 3\n", b"1000000 5\n5 1000000\n"],
    "matrix_market": [b"%%MatrixMarket matrix coordinate real general\n% c\n4 4 3\n1 2 1.5\n2 3 2\n4 1 -1\n",
                      b"%%MatrixMarket matrix coordinate pattern symmetric\n4 4 2\n2 1\n4 3\n"],
    "metis_graph": [b"4 3\n2\n1 3\n2 4\n3\n", b"% c\n4 3 011 1\n5 2 1\n5 1 1 3 2\n5 2 2 4 1\n5 3 1\n"],
    "npz": [archive({"data": floats(*ONES), "indices": ints(*INDICES, code="i"), "indptr": ints(*INDPTR, code="i"),
                     "shape": ints(4, 4), "format": text("csr")}, how) for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)],
    "matlab": [MATLAB + matlab("network", 4, 4, doubles(*DENSE)) + matlab("group", 4, 1, doubles(1, 2, 1, 2)) +
               matlab("attrb", 4, 2, doubles(*FEATURES[::2], *FEATURES[1::2])),
               MATLAB + SPARSE + matlab("names", 1, 2, matlab("", 1, 1, doubles(1)), matlab("", 1, 1, doubles(2)), kind=1) +
               matlab("about", 1, 1, words(8), element(1, b"year".ljust(8, b"\0")), matlab("", 1, 1, doubles(2026)), kind=2),
               MATLAB + struct.pack("<II", 15, len(zlib.compress(SPARSE))) + zlib.compress(SPARSE)],
    "compressed": [gzip.compress(EDGES, mtime=0), gzip.compress(b"0 1\n" * 5000, mtime=0)],
    "npy": [ints(1, 2, 3), floats(1, 2, 3, 4, 5, 6, code="d", shape=(2, 3)), npy("<U2", (2,), "abcd".encode("utf-32-le"), 2)],
    "toml": [b"hidden = 8\nmodel = 'gcn'\nepochs = 3\ndropout = 0.5\nbias = true\n"],
    "json": [b'{"hidden": 8, "model": "sage", "lr": 1e-2, "bias": false, "groups": "2x1"}'],
    "epoch_table": [b"epoch,loss,train_accuracy,val_accuracy,test_accuracy,train_score,val_score,test_score,seconds,eval_seconds,"
                    b"compute_seconds,communication_seconds,hidden_seconds\n1,0.5\n2,0.25\n"],
}
# Files after a byte of options.
OPTIONS = {"edge_list": [b"\x80source,target,r\n0,1,0\n0,1,2\n1,1,3\n1,1,0\n0,1,2\n3,0,1\n", b"\x81a,source,target,r\n.5,u,v,1\n2,v,u,0\n"]}
FILES["unnamed"] = FILES["matrix_market"] + FILES["edge_list"] + FILES["npz"] + FILES["matlab"]
PIECES = {
    "archive": [
        {"f.npz:adj_data": floats(*ONES), "f.npz:adj_indices": ints(*INDICES, code="i"), "f.npz:adj_indptr": ints(*INDPTR, code="i"),
         "f.npz:adj_shape": ints(4, 4), "f.npz:attr_matrix": floats(*FEATURES, shape=(4, 2)), "f.npz:labels": ints(*LABELS),
         "f.npz:train_masks": ints(1, 0, 0, 0, code="?")},
        {"f.npz:row": ints(*ROWS, code="i"), "f.npz:col": ints(*INDICES, code="i"), "f.npz:data": floats(*ONES), "f.npz:shape": ints(4, 4),
         "f.npz:format": text("coo")},
        {"f.npz:edges": ints(0, 1, 1, 2, 2, 3, shape=(3, 2)), "f.npz:node_features": floats(*FEATURES, shape=(4, 2)),
         "f.npz:node_labels": ints(*LABELS), "f.npz:train_masks": ints(1, 0, 0, 0, 0, 1, 0, 0, code="?", shape=(2, 4))}],
    "directory": [
        {"meta.json": b'{"name": "path", "undirected": true, "class_names": ["a", "b"]}', "indptr.npy": ints(*INDPTR),
         "indices.npy": ints(*INDICES, code="i"), "features.npy": floats(*FEATURES, shape=(4, 2)), "labels.npy": ints(*LABELS),
         "train_idx.npy": ints(0, 1), "val_idx.npy": ints(2), "test_idx.npy": ints(3)},
        {"meta.json": b"\xef\xbb\xbf{}", "indptr.npy": ints(*INDPTR), "indices.npy": ints(*INDICES, code="i"), "weights.npy": floats(*ONES),
         "features_indptr.npy": ints(0, 1, 2, 3, 4), "features_indices.npy": ints(0, 1, 0, 1, code="i"), "features_data.npy": floats(1, 2, 3, 4),
         "labels.npy": floats(*LABELS, *LABELS, shape=(4, 2)), "train_mask.npy": ints(1, 1, 0, 0, code="?"), "vertex_ids.npy": ints(7, 8, 9, 10)},
        {"meta.json": b'{"relations": 4}', "indptr.npy": ints(*INDPTR), "indices.npy": ints(1, 0, 0, 1, 3, 2, code="i"),
         "edge_types.npy": ints(0, 0, 2, 1, 0, 3, code="i"), "edge_features.npy": floats(*range(12), shape=(6, 2)), "weights.npy": floats(*ONES)},
        {"meta.json": b"{}", "indptr.npy": ints(*INDPTR), "indices.npy": ints(1, 2, 2, 3, 1, 2, code="i"),
         "edge_types.npy": ints(1, 1, 0, 0, 1, 1, code="B")},
        {"meta.json": b"{}", "indptr.npy": ints(*INDPTR), "indices.npy": ints(*INDICES, code="i"),
         "val_links.npy": ints(0, 3, code="i", shape=(1, 2)), "val_negatives.npy": ints(0, 2, 1, 3, code="i", shape=(2, 2)),
         "test_links.npy": ints(1, 3, 3, 0, shape=(2, 2)), "test_negatives.npy": ints(2, 0, shape=(1, 2))},
        # an entry that is there twice, which is refused
        {"meta.json": b"{}", "indptr.npy": ints(*INDPTR), "indices.npy": ints(1, 0, 0, 1, 3, 2, code="i"), "edge_features.npy": floats(*range(6), shape=(6, 1))}],
    "relations": [
        {"relations/a.csv": b"source,target\n0,1\n1,2\n", "relations/b.npy": ints(3, 0, 1, 1, code="i", shape=(2, 2)), "relations/c.csv": b""},
        {"relations/a.csv": b"u,v,2\nv,u,1\n", "relations/c.csv": b"w,u\n", "labels.csv": b"u,0\nv,1\nw,0\n", "train.csv": b"w\n"},
        {"relations/a.csv": b"0 1\n", "relations/c.csv": b"u v\n"},
        {"meta.json": b'{"relations": 2}', "labels.npy": ints(*LABELS), "relations/b.npy": ints(3, 0, 1, 1, shape=(2, 2)), "relations/c.csv": b"0,1\n"}],
    "ogb": [{"raw/num-node-list.csv": b"4\n", "raw/num-edge-list.csv": b"3\n", "raw/edge.csv": b"0,1\n1,2\n2,3\n",
             "raw/node-feat.csv": b"0,1\n.5,0\n0,2\n1,1\n", "raw/node-label.csv": b"0\n1\n0\n1\n", "split/time/train.csv": b"0\n1\n",
             "split/time/valid.csv": b"2\n", "split/time/test.csv": b"3\n"}],
    "ogb_typed": [{"raw/num-node-dict.csv": b"a,p\n2,2\n", "raw/triplet-type-list.csv": b"a,w,p\n", "raw/relations/a___w___p/edge.csv": b"0,1\n1,0\n1,1\n",
                   "raw/relations/a___w___p/num-edge-list.csv": b"3\n", "raw/node-feat/p/node-feat.csv": b"0,1\n.5,0\n", "raw/node-label/p/node-label.csv": b"0\n1\n",
                   "split/time/p/train.csv": b"0\n", "split/time/p/valid.csv": b"1\n", "split/time/p/test.csv": b""}],
    "ogb_binary": [{"raw/data.npz:edge_index": ints(0, 1, 2, 1, 2, 3, shape=(2, 3)), "raw/data.npz:node_feat": floats(*FEATURES, shape=(4, 2)),
                    "raw/data.npz:num_nodes_list": ints(4), "raw/data.npz:num_edges_list": ints(3),
                    "raw/node-label.npz:node_label": ints(*LABELS, shape=(4, 1)), "split/time/train.csv": b"0\n1\n",
                    "split/time/valid.csv": b"2\n", "split/time/test.csv": b"3\n"}],
    "graphsaint": [dict(SAINT, **{"feats.npy": floats(*FEATURES, code="d", shape=(4, 2)), "class_map.json": b'{"0": 0, "1": 1, "2": 0, "3": 1}',
                                  "role.json": b'{"tr": [0, 1], "va": [2], "te": [3]}'}),
                   dict(SAINT, **{"feats.npy": floats(*FEATURES, shape=(4, 2)), "class_map.json": b'{"0": [0, 1], "1": [1, 0], "2": [0, 0], "3": [1, 1]}', "role.json": b'{"tr": [0], "va": [], "te": [3]}'})],
    "tables": [{"edges.csv": b"source,target,weight\na,b,1\nb,c,2\n", "nodes.csv": b"id,c,x,split\na,u,1.5,train\nb,v,1,val\nc,u;v,2,test\n"},
               {"edges.csv": b"0,1\n1,2\n", "labels.csv": b"0,u\n1,v\n2,u\n", "features.txt": b"0 1:0.5 3:1\n1 2:1\n2 1:2\n", "train.csv": b"0\n",
                "val.csv": b"1\n", "test.csv": b"2\n"}],
    "remembered": [{"starling/machine.json": b'{"here": {"processors": 2, "threads": 2, "gemm": [1e11, 2e11], "gathers": []}}'}],
}


def run(*arguments):
    subprocess.run([STARLING, *arguments], check=True, stdout=subprocess.DEVNULL)


def written_by_the_program():
    """Checkpoints, logs, traces and partitions, small ones."""
    run("train", KARATE, "--epochs", "2", "--workers", "1", "--hidden", "2", "--checkpoint", "c", "--log", "l", "--trace", "t", "--quiet")
    run("partition", KARATE, "--method", "libra", "--parts", "2", "--out", "p.npy")

    def content(name):
        with open(name, "rb") as file:
            return file.read()

    machines = os.path.join(os.path.dirname(KARATE), "machines")
    FILES["checkpoint"] = [content("c"), content("c").replace(b'"crc32"', b'"other"'), checkpoint()]  # a fuzzer makes no checksums
    FILES["machine"] = [content(os.path.join(machines, name)) for name in sorted(os.listdir(machines))]
    PIECES["parts"] = [{"f.npy": content("p.npy"), "f.json": content("p.json")}]
    PIECES["log"] = [{"f.jsonl": content("l"), "f.trace": content("t")[:20000]}]


def joined(names, pieces):
    """The byte of options, and the pieces as tests/fuzz/readers.c wants them."""
    return b"\0" + b"".join(b"\xf5\xf6" + bytes([names.index(name)]) + data for name, data in pieces.items())


shutil.rmtree(FOLDER, ignore_errors=True)
os.makedirs(FOLDER)
os.chdir(FOLDER)
written_by_the_program()
listed = subprocess.run([READERS, "list"], check=True, stdout=subprocess.PIPE, text=True).stdout
for line in listed.splitlines():
    reader, *names = line.split()
    seeds = [b"\0" + data for data in FILES.get(reader, [])] + [joined(names, pieces) for pieces in PIECES.get(reader, [])]
    seeds += OPTIONS.get(reader, [])
    if not seeds:
        sys.exit(f"the reader {reader} has no input in {__file__}")
    os.mkdir(reader)
    for k, seed in enumerate(seeds):
        with open(os.path.join(reader, f"seed-{k}"), "wb") as file:
            file.write(seed)
