#!/usr/bin/env python3
"""Writes this dataset: Zachary's karate club (W. W. Zachary, "An information flow model for conflict and fission in
small groups", Journal of Anthropological Research 33, 1977). Vertex 0 is the instructor, Mr. Hi; vertex 33 is the
club's officer; a label is the club that a member joined after the split. Needs nothing but Python."""
import json
import os
import struct

FRIENDS = {  # of each member, those with a higher number
    0: [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
    1: [2, 3, 7, 13, 17, 19, 21, 30],
    2: [3, 7, 8, 9, 13, 27, 28, 32],
    3: [7, 12, 13],
    4: [6, 10],
    5: [6, 10, 16],
    6: [16],
    8: [30, 32, 33],
    9: [33],
    13: [33],
    14: [32, 33],
    15: [32, 33],
    18: [32, 33],
    19: [33],
    20: [32, 33],
    22: [32, 33],
    23: [25, 27, 29, 32, 33],
    24: [25, 27, 31],
    25: [31],
    26: [29, 33],
    27: [33],
    28: [31, 33],
    29: [32, 33],
    30: [32, 33],
    31: [32, 33],
    32: [33],
}
MEMBERS = 34
OFFICERS = {9, 14, 15, 18, 20, *range(22, 34)}
TRAIN = [0, 5, 24, 33]
VAL = [1, 6, 9, 13, 22, 25, 28, 30]


def write(name, dtype, code, values):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (dtype, len(values))
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%d%s" % (len(values), code), *values))


rows = [set() for _ in range(MEMBERS)]
for member, friends in FRIENDS.items():
    for friend in friends:
        rows[member].add(friend)
        rows[friend].add(member)
indptr = [0]
for row in rows:
    indptr.append(indptr[-1] + len(row))
assert indptr[-1] == 2 * 78
write("indptr.npy", "<i8", "q", indptr)
write("indices.npy", "<i4", "i", [column for row in rows for column in sorted(row)])
write("labels.npy", "<i4", "i", [int(member in OFFICERS) for member in range(MEMBERS)])
write("train_idx.npy", "<i8", "q", TRAIN)
write("val_idx.npy", "<i8", "q", VAL)
write("test_idx.npy", "<i8", "q", [m for m in range(MEMBERS) if m not in TRAIN and m not in VAL])
meta = {
    "name": "karate",
    "nodes": MEMBERS,
    "edges": 78,
    "nnz": 156,
    "features": {"form": "identity"},
    "classes": 2,
    "class_names": ["Mr. Hi", "Officer"],
    "directed": False,
    "multilabel": False,
    "source": "W. W. Zachary, Journal of Anthropological Research 33 (1977), 452-473",
}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "meta.json"), "w") as file:
    json.dump(meta, file, indent=1)
    file.write("\n")
