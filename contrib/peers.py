#!/usr/bin/env python3
"""Seconds per epoch of the same GCN in Starling, PyTorch Geometric and DGL, in turn.

Usage: OMP_NUM_THREADS=2 contrib/peers.py STARLING DATASET [HIDDEN [LAYERS [EPOCHS [ROUNDS [DEVICE]]]]]

Needs, in an environment of its own: torch 2.2, scipy, torch_geometric 2.8, dgl 2.1. Without dgl,
DGL is left out. DEVICE is cpu, or cuda for one GPU, without DGL. DATASET is a
directory with features of an undirected graph. Each round trains Starling, then each peer; prints
the median of the rounds' medians. Peers train EPOCHS epochs after one that does not count,
Starling four times as many. All have OMP_NUM_THREADS threads, symmetric normalization with loops,
Adam without decay, biases, float32, and dropout 0.5 before all layers but the first. Starling's
epochs measure the training accuracy, too; the peers' do not. Nothing is aggregated beforehand.

PyG multiplies an EdgeIndex that knows its transpose. Its other forms, a CSR tensor and a pair of
rows per edge, took 1.1 to 20 times as long.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F

os.environ.setdefault("DGLBACKEND", "pytorch")
try:
    import dgl
    from dgl.nn import GraphConv
except ImportError:
    dgl = None
from torch_geometric import EdgeIndex
from torch_geometric.nn import GCNConv

program, directory = sys.argv[1:3]
hidden, layers, epochs, rounds = (int(sys.argv[i]) if len(sys.argv) > i else usual
                                  for i, usual in ((3, 64), (4, 2), (5, 5), (6, 5)))
device = sys.argv[7] if len(sys.argv) > 7 else "cpu"
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


def load(name):
    return np.load(os.path.join(directory, name + ".npy"))


with open(os.path.join(directory, "meta.json")) as file:
    meta = json.load(file)
classes = meta["classes"]
indptr, indices = load("indptr"), load("indices")
n = len(indptr) - 1
sparse = os.path.exists(os.path.join(directory, "features_indptr.npy"))
if sparse:
    width = meta["features"]["count"]
    features = torch.sparse_csr_tensor(
        *(torch.tensor(load("features_" + part)) for part in ("indptr", "indices")),
        torch.tensor(load("features_data").astype(np.float32)), (n, width))
else:
    features = torch.tensor(load("features").astype(np.float32))
    width = features.shape[1]
labels = torch.tensor(load("labels").astype(np.int64))
train = torch.tensor(load("train_idx").astype(np.int64))
looped = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (n, n)) + sp.eye(
    n, format="csr", dtype=np.float32)
scale = sp.diags(np.asarray(looped.sum(1)).ravel() ** -0.5)
normalized = (scale @ looped @ scale).tocoo().astype(np.float32)
if (normalized != normalized.T).nnz:
    sys.exit(f"{directory}: the graph is directed (expected an undirected one)")
rows, columns = (torch.tensor(part.astype(np.int64)) for part in (normalized.row, normalized.col))
weights = torch.tensor(normalized.data)
features, labels, train, rows, columns, weights = (
    tensor.to(device) for tensor in (features, labels, train, rows, columns, weights))
dims = [width] + [hidden] * (layers - 1) + [classes]


class Net(torch.nn.Module):
    """layer(i, h) is one layer's product, aggregation and bias."""

    def forward(self):
        h = features
        for i in range(layers):
            h = self.layer(i, h)
            if i < layers - 1:
                h = F.dropout(F.relu(h), 0.5, training=self.training)
        return h


class PyG(Net):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.ModuleList(GCNConv(a, b) for a, b in zip(dims, dims[1:]))
        self.edges = EdgeIndex(torch.stack([rows, columns]), sparse_size=(n, n), sort_order="row",
                               is_undirected=True).fill_cache_()

    def layer(self, i, h):
        conv = self.conv[i]
        h = torch.sparse.mm(h, conv.lin.weight.t()) if sparse and i == 0 else conv.lin(h)
        return self.edges.matmul(h, input_value=weights) + conv.bias


class DGL(Net):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.ModuleList(
            GraphConv(a, b, weight=not (sparse and i == 0))
            for i, (a, b) in enumerate(zip(dims, dims[1:])))
        self.first = torch.nn.Parameter(torch.randn(width, dims[1]) * 0.05) if sparse else None
        self.graph = dgl.graph((rows, columns), num_nodes=n).int()
        self.graph.create_formats_()

    def layer(self, i, h):
        return self.conv[i](self.graph, torch.sparse.mm(h, self.first) if sparse and i == 0 else h)


def peer(net):
    net.to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    def epoch():
        optimizer.zero_grad()
        F.cross_entropy(net()[train], labels[train]).backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    def measure():
        times = []
        for _ in range(epochs + 1):
            start = time.perf_counter()
            epoch()
            times.append(time.perf_counter() - start)
        return statistics.median(times[1:])

    return measure


def starling():
    with tempfile.NamedTemporaryFile() as log:
        subprocess.run([program, "train", directory, "--quiet", "--log", log.name, "--epochs",
                        str(4 * epochs), "--hidden", str(hidden), "--layers", str(layers),
                        "--workers", str(torch.get_num_threads()), "--input-dropout", "0",
                        "--no-cache-aggregate", "--weight-decay", "0", "--bias",
                        "--normalize-features", "none", "--device", device],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads(log.read().splitlines()[-1])["epoch_seconds_median"]


contestants = {"Starling": starling, "PyG": peer(PyG())}
if dgl and device == "cpu":
    contestants["DGL"] = peer(DGL())
times = {name: [] for name in contestants}
for _ in range(rounds):
    for name, measure in contestants.items():
        times[name].append(measure())
own = statistics.median(times["Starling"])
print(f"{os.path.basename(directory.rstrip('/'))}, {layers} layers, hidden {hidden}, {device}")
for name, seconds in times.items():
    median = statistics.median(seconds)
    print(f"  {name:9} {median:.4f} s ({median / own:.1f} x), rounds {min(seconds):.4f} to "
          f"{max(seconds):.4f}")
