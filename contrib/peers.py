#!/usr/bin/env python3
"""Seconds per epoch of the same model in Starling, PyTorch, PyTorch Geometric and DGL, in turn.

Usage: OMP_NUM_THREADS=2 contrib/peers.py STARLING DATASET... [OPTIONS]; see --help.

Needs, in an environment of its own: torch 2.2, scipy, torch_geometric 2.8, dgl 2.1. Without dgl,
DGL is left out. A DATASET is a directory with features of an undirected graph. Each round trains
Starling, then each peer; prints the median of the rounds' medians. Peers train EPOCHS epochs after
one that does not count, Starling four times as many. All have OMP_NUM_THREADS threads, Adam without
decay, biases, float32, and dropout 0.5 before all layers but the first. Starling's epochs measure
the training accuracy, too; the peers' do not. Nothing is aggregated beforehand. Peers compute all
rows. Starling computes needed rows where --rows auto takes them; --starling '--rows all': all rows.

Each peer gets the faster of two forms of the features, a dense matrix or CSR with its transpose,
and multiplies features by weights before it aggregates. "torch" is what an expert writes: CSR
products of PyTorch whose gradient multiplies the transpose, made once. PyG multiplies an EdgeIndex
that knows its transpose. Its CSR tensor and its pair of rows per edge took 1.1 to 20 times as long.

With --clusters PARTS,BATCH an epoch is one step for each batch of BATCH of PARTS parts of METIS:
Starling's --batches, PyG's ClusterLoader, and slices of SciPy's matrix for torch. Batches lose the
edges between them. Clusters train sage with means; its features are dense.

--model rgcn reads edge_types.npy, or without that file draws --relations R at random; the graph may
be directed. All take means of each relation, and dense features. "torch" has a CSR product for each
relation. "PyG fast" is FastRGCNConv. DGL's edges are in the order of relations. --memory prints peaks
of processes, "-" for one that fails.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F

os.environ.setdefault("DGLBACKEND", "pytorch")
warnings.filterwarnings("ignore")
try:
    import dgl
    import dgl.function as fn
    from dgl.nn import GATConv as DglGATConv, GATv2Conv as DglGATv2Conv, RelGraphConv
except ImportError:
    dgl = None
from torch_geometric import EdgeIndex
from torch_geometric.nn import FastRGCNConv, GATConv, GATv2Conv, RGCNConv, TransformerConv
from torch_geometric.utils import scatter

DENSE_BYTES = 1 << 30  # features above this many bytes stay CSR


class Product(torch.autograd.Function):
    """matrix @ h, with the transpose for the gradient."""

    @staticmethod
    def forward(context, matrix, transposed, h):
        context.transposed = transposed
        return matrix @ h

    @staticmethod
    def backward(context, gradient):
        return None, None, context.transposed @ gradient.contiguous()


def csr(matrix):
    matrix = matrix.tocsr().astype(np.float32)
    return torch.sparse_csr_tensor(torch.tensor(matrix.indptr.astype(np.int64)),
                                   torch.tensor(matrix.indices.astype(np.int64)),
                                   torch.tensor(matrix.data), matrix.shape)


class Dataset:
    """The graph as SciPy's CSR; features as a dense tensor, as CSR and its transpose, or both."""

    def __init__(self, directory, device, typed):
        def load(name):
            return np.load(os.path.join(directory, name + ".npy"))

        with open(os.path.join(directory, "meta.json")) as file:
            meta = json.load(file)
        self.directory, self.device = directory, device
        self.name = os.path.basename(directory.rstrip("/"))
        self.classes = meta["classes"]
        for name in ("indptr", "indices", *(["edge_types"] if typed else [])):
            if not os.path.exists(os.path.join(directory, name + ".npy")):
                sys.exit(f"peers.py: {directory} has no {name}.npy (expected a directory that starling "
                         "convert writes" + (", or --relations)" if name == "edge_types" else ")"))
        indptr, indices = load("indptr"), load("indices")
        self.n = len(indptr) - 1
        self.graph = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr),
                                   (self.n, self.n))
        self.types = load("edge_types").astype(np.int64) if typed else None
        if not typed and (self.graph != self.graph.T).nnz:
            sys.exit(f"{directory}: the graph is directed (expected an undirected one)")
        self.forms = {}
        if os.path.exists(os.path.join(directory, "features_indptr.npy")):
            matrix = sp.csr_matrix(
                (load("features_data").astype(np.float32), load("features_indices"),
                 load("features_indptr")), (self.n, meta["features"]["count"]))
            self.width = matrix.shape[1]
            self.forms["CSR"] = csr(matrix).to(device), csr(matrix.T).to(device)
            if 4 * self.n * self.width <= DENSE_BYTES:
                self.forms["dense"] = torch.tensor(matrix.toarray()).to(device)
        else:
            self.forms["dense"] = torch.tensor(load("features").astype(np.float32)).to(device)
            self.width = self.forms["dense"].shape[1]
        self.labels = torch.tensor(load("labels").astype(np.int64)).to(device)
        self.train = torch.tensor(load("train_idx").astype(np.int64)).to(device)

    def adjacency(self, model):
        """The matrix that a model multiplies by, its rows and columns the same; of rgcn, a matrix
        for each relation."""
        if model == "rgcn":
            rows, columns = np.repeat(np.arange(self.n), np.diff(self.graph.indptr)), self.graph.indices
            return [sp.csr_matrix((np.ones(len(chosen), np.float32), (rows[chosen], columns[chosen])),
                                  (self.n, self.n))
                    for chosen in (np.flatnonzero(self.types == r) for r in range(self.types.max() + 1))]
        loops = sp.eye(self.n, format="csr", dtype=np.float32)
        if model in ("gcn", "resgcn"):
            looped = self.graph + loops
            scale = sp.diags(np.asarray(looped.sum(1)).ravel() ** -0.5)
            return (scale @ looped @ scale).tocsr().astype(np.float32)
        return (self.graph + loops).tocsr() if model in ("gat", "gatv2", "gin") else self.graph


class Linear(torch.nn.Module):
    """A product with weights, of dense rows or of CSR features."""

    def __init__(self, inputs, outputs, bias=False):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(inputs, outputs) * (2 / (inputs + outputs)) ** .5)
        self.bias = torch.nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, h):
        z = Product.apply(*h, self.weight) if isinstance(h, tuple) else h @ self.weight
        return z if self.bias is None else z + self.bias


class TorchAdjacency:
    """Sums and maxima over neighbours by PyTorch's CSR products."""

    def __init__(self, matrix, device):
        self.matrix = csr(matrix).to(device)

    def sum(self, h):
        return Product.apply(self.matrix, self.matrix, h)

    def max(self, h):
        return torch.sparse.mm(self.matrix, h, "amax")


class PygAdjacency:
    """The same by PyG's EdgeIndex."""

    def __init__(self, matrix, device):
        matrix = matrix.tocoo()
        rows, columns = (torch.tensor(part.astype(np.int64)) for part in (matrix.row, matrix.col))
        self.edges = EdgeIndex(torch.stack([rows, columns]).to(device), sparse_size=matrix.shape,
                               sort_order="row", is_undirected=True).fill_cache_()
        ones = (matrix.data == 1).all()
        self.weights = None if ones else torch.tensor(matrix.data).to(device)

    def sum(self, h):
        return self.edges.matmul(h, input_value=self.weights)

    def max(self, h):
        rows, columns = self.edges
        return scatter(h[columns], rows, 0, h.shape[0], "max")


class DglAdjacency:
    """The same by DGL's messages. Weights are those of GCN: factors of rows and columns."""

    def __init__(self, matrix, device):
        matrix = matrix.tocoo()
        self.graph = dgl.graph((torch.tensor(matrix.col.astype(np.int64)),
                                torch.tensor(matrix.row.astype(np.int64))),
                               num_nodes=matrix.shape[0]).int().to(device)
        self.graph.create_formats_()
        self.scale = None if (matrix.data == 1).all() else 1 / torch.sqrt(
            self.graph.in_degrees().float())[:, None]

    def reduce(self, h, reducer):
        with self.graph.local_scope():
            self.graph.srcdata["h"] = h
            self.graph.update_all(fn.copy_u("h", "m"), reducer("m", "z"))
            return self.graph.dstdata["z"]

    def sum(self, h):
        if self.scale is None:
            return self.reduce(h, fn.sum)
        return self.reduce(h * self.scale, fn.sum) * self.scale

    def max(self, h):
        return self.reduce(h, fn.max)


class Gcn(torch.nn.Module):
    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        self.adjacency, self.linear = adjacency, Linear(inputs, outputs)
        self.bias = torch.nn.Parameter(torch.zeros(outputs))
        self.narrow = outputs <= inputs

    def forward(self, h):
        if self.narrow or isinstance(h, tuple):
            return self.adjacency.sum(self.linear(h)) + self.bias
        return self.linear(self.adjacency.sum(h)) + self.bias


class Sage(torch.nn.Module):
    """aggregate(H N) + H W + b; maxima are taken of the input, as the model says."""

    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        self.adjacency, self.aggregator = adjacency, options.aggregator
        self.own, self.neighbours = Linear(inputs, outputs, True), Linear(inputs, outputs)
        self.narrow = outputs <= inputs
        self.mean = 1 / options.degrees.clamp(min=1)[:, None]

    def forward(self, h):
        if self.aggregator == "max":
            return self.neighbours(self.adjacency.max(h)) + self.own(h)
        if self.narrow or isinstance(h, tuple):
            return self.adjacency.sum(self.neighbours(h)) * self.mean + self.own(h)
        return self.neighbours(self.adjacency.sum(h) * self.mean) + self.own(h)


class Gin(torch.nn.Module):
    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        self.adjacency = adjacency
        self.first, self.second = Linear(inputs, options.hidden), Linear(options.hidden, outputs, True)
        self.bias = torch.nn.Parameter(torch.zeros(options.hidden))

    def forward(self, h):
        return self.second(F.relu(self.adjacency.sum(self.first(h)) + self.bias))


class PygGat(torch.nn.Module):
    """PyG's GATConv on a pair of rows per edge: its attention takes no EdgeIndex."""

    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        self.conv = GATConv(inputs, outputs, heads=1 if last else options.heads, concat=not last,
                            add_self_loops=False)
        self.linear = Linear(inputs, outputs * (1 if last else options.heads))
        self.conv.lin, self.edges = torch.nn.Identity(), adjacency.edges.as_tensor()

    def forward(self, h):
        return self.conv(self.linear(h), self.edges)


class DglGat(torch.nn.Module):
    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        self.heads, self.outputs = 1 if last else options.heads, outputs
        self.conv = DglGATConv(inputs, outputs, self.heads)
        self.linear, self.graph = Linear(inputs, outputs * self.heads), adjacency.graph
        self.conv.fc = torch.nn.Identity()

    def forward(self, h):
        return self.conv(self.graph, self.linear(h)).flatten(1)


class Pick(torch.nn.Module):
    """Takes the place of one of a layer's products, which are made before."""

    def __init__(self, which):
        super().__init__()
        self.which = which

    def forward(self, products):
        return products[self.which]


class PygPair(torch.nn.Module):
    """PyG's GATv2Conv or TransformerConv on a pair of rows per edge; the latter without a product of
    the vertex's own values."""

    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        heads = 1 if last else options.heads
        if options.model == "gatv2":
            self.names = ("lin_l", "lin_r")
            self.conv = GATv2Conv(inputs, outputs, heads=heads, concat=not last, add_self_loops=False)
        else:
            self.names = ("lin_key", "lin_value", "lin_query")
            self.conv = TransformerConv(inputs, outputs, heads=heads, concat=not last,
                                        root_weight=False)
        for which, name in enumerate(self.names):
            setattr(self.conv, name, torch.nn.Identity() if len(self.names) == 2 else Pick(which))
        self.linear = torch.nn.ModuleList(Linear(inputs, outputs * heads, True) for _ in self.names)
        self.edges = adjacency.edges.as_tensor()

    def forward(self, h):
        products = tuple(linear(h) for linear in self.linear)
        return self.conv(products if len(products) == 2 else (products, products), self.edges)


class DglGatv2(torch.nn.Module):
    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        heads = 1 if last else options.heads
        self.conv = DglGATv2Conv((inputs, inputs), outputs, heads)
        self.linear = torch.nn.ModuleList(Linear(inputs, outputs * heads, True) for _ in range(2))
        self.conv.fc_src = self.conv.fc_dst = torch.nn.Identity()
        self.graph = adjacency.graph

    def forward(self, h):
        return self.conv(self.graph, tuple(linear(h) for linear in self.linear)).flatten(1)


class Relations:
    """Rows, columns and relations of entries, in the order of relations."""

    def __init__(self, matrices, device):
        self.count, self.n = len(matrices), matrices[0].shape[0]
        parts = [matrix.tocoo() for matrix in matrices]
        self.rows, self.columns = (torch.tensor(np.concatenate([getattr(part, end) for part in parts])
                                                .astype(np.int64)).to(device) for end in ("row", "col"))
        self.types = torch.repeat_interleave(torch.tensor([part.nnz for part in parts])).to(device)
        self.prepare(matrices, device)

    def prepare(self, matrices, device):
        self.edges = torch.stack([self.columns, self.rows])


class TorchRelations(Relations):
    def prepare(self, matrices, device):
        means = [sp.diags(1 / np.maximum(np.diff(matrix.indptr), 1)) @ matrix for matrix in matrices]
        self.means = [(csr(mean).to(device), csr(mean.T).to(device)) for mean in means]


class DglRelations(Relations):
    def prepare(self, matrices, device):
        self.graph = dgl.graph((self.columns, self.rows), num_nodes=self.n).int().to(device)
        self.graph.create_formats_()
        places = self.types * self.n + self.rows
        self.norm = 1 / torch.bincount(places)[places].float()[:, None]


class TorchRgcn(torch.nn.Module):
    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        self.means, self.own = adjacency.means, Linear(inputs, outputs, True)
        self.narrow = outputs <= inputs
        scale = (2 / (inputs + outputs)) ** .5
        self.weight = torch.nn.Parameter(scale * torch.randn(options.bases or adjacency.count,
                                                             inputs, outputs))
        self.factors = torch.nn.Parameter(
            torch.randn(adjacency.count, options.bases)) if options.bases else None

    def forward(self, h):
        weight = self.weight
        if self.factors is not None:
            weight = torch.einsum("rb,bio->rio", self.factors, weight)
        z = self.own(h)
        for (mean, transposed), matrix in zip(self.means, weight):
            z = z + (Product.apply(mean, transposed, h @ matrix) if self.narrow else
                     Product.apply(mean, transposed, h) @ matrix)
        return z


class PygRgcn(torch.nn.Module):
    kind = RGCNConv

    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        self.conv = self.kind(inputs, outputs, adjacency.count, num_bases=options.bases or None)
        self.adjacency = adjacency

    def forward(self, h):
        return self.conv(h, self.adjacency.edges, self.adjacency.types)


class PygFastRgcn(PygRgcn):
    kind = FastRGCNConv


class DglRgcn(torch.nn.Module):
    def __init__(self, adjacency, inputs, outputs, options, last):
        super().__init__()
        self.conv = RelGraphConv(inputs, outputs, adjacency.count,
                                 regularizer="basis" if options.bases else None,
                                 num_bases=options.bases or None)
        self.adjacency = adjacency

    def forward(self, h):
        a = self.adjacency
        return self.conv(a.graph, h, a.types, a.norm, presorted=True)


class Stack(torch.nn.Module):
    """Layers with activations and dropout between them."""

    def __init__(self, kind, adjacency, data, options):
        super().__init__()
        heads = options.heads if options.model in ATTENTION else 1
        dims = [data.width] + [options.hidden * heads] * (options.layers - 1)
        outs = [options.hidden] * (options.layers - 1) + [data.classes]
        self.layers = torch.nn.ModuleList(
            kind(adjacency, a, b, options, i == options.layers - 1)
            for i, (a, b) in enumerate(zip(dims, outs)))
        self.activation = F.elu if options.model in ATTENTION else F.relu

    def forward(self, h):
        for i, layer in enumerate(self.layers):
            h = layer(h)
            if i < len(self.layers) - 1:
                h = F.dropout(self.activation(h), 0.5, training=self.training)
        return h


class ResGcn(torch.nn.Module):
    """Blocks H += GCN(dropout(relu(norm(H)))) between two linear layers."""

    def __init__(self, kind, adjacency, data, options):
        super().__init__()
        self.first = Linear(data.width, options.hidden, True)
        self.last = Linear(options.hidden, data.classes, True)
        self.convs = torch.nn.ModuleList(kind(adjacency, options.hidden, options.hidden, options, False)
                                         for _ in range(options.layers))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(options.hidden)
                                         for _ in range(options.layers + 1))

    def before(self, i, h):
        return F.dropout(F.relu(self.norms[i](h)), 0.5, training=self.training)

    def forward(self, h):
        h = self.first(h)
        for i, conv in enumerate(self.convs):
            h = h + conv(self.before(i, h))
        return self.last(self.before(len(self.convs), h))


ADJACENCIES = {"torch": TorchAdjacency, "PyG": PygAdjacency, "DGL": DglAdjacency}
KINDS = {"gcn": Gcn, "resgcn": Gcn, "sage": Sage, "gin": Gin}
ATTENTION = {"gat": {"PyG": PygGat, "DGL": DglGat}, "gatv2": {"PyG": PygPair, "DGL": DglGatv2},
             "transformer": {"PyG": PygPair}}
RGCN = {"torch": (TorchRelations, TorchRgcn), "PyG": (Relations, PygRgcn),
        "PyG fast": (Relations, PygFastRgcn), "DGL": (DglRelations, DglRgcn)}


class Peer:
    """A model of a peer with the faster form of features; measure() is seconds per epoch."""

    def __init__(self, name, data, options):
        self.data, self.options = data, options
        form, kind = RGCN[name] if options.model == "rgcn" else (
            ADJACENCIES[name], KINDS.get(options.model) or ATTENTION[options.model][name])
        adjacency = form(data.adjacency(options.model), data.device)
        self.net = (ResGcn if options.model == "resgcn" else Stack)(kind, adjacency, data, options)
        self.net.to(data.device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)
        forms = {form: value for form, value in data.forms.items()
                 if form == "dense" or options.aggregator != "max" and options.model != "rgcn"}
        if not forms:
            sys.exit(f"peers.py: {data.directory}: features take over 1 GB as a dense matrix, which "
                     "rgcn and maxima need (expected fewer features)")
        times = {}
        for self.form, self.features in forms.items():
            self.epoch()
            times[self.form] = min(self.epoch() for _ in range(2)) if len(forms) > 1 else 0
        self.form = min(times, key=times.get)
        self.features = forms[self.form]

    def epoch(self):
        start = time.perf_counter()
        self.optimizer.zero_grad()
        train = self.data.train
        F.cross_entropy(self.net(self.features)[train], self.data.labels[train]).backward()
        self.optimizer.step()
        if self.data.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    def measure(self):
        return statistics.median([self.epoch() for _ in range(self.options.epochs + 1)][1:])


class Clusters:
    """Batches of METIS' parts: an epoch is one step for each batch."""

    def __init__(self, data, options):
        self.data, self.options = data, options
        self.parts, self.batch = (int(n) for n in options.clusters.split(","))
        self.features = data.forms["dense"]
        self.mask = torch.zeros(data.n, dtype=torch.bool)
        self.mask[data.train] = True
        graph = data.graph.tocoo()
        self.assignment = dgl.metis_partition_assignment(
            dgl.graph((torch.tensor(graph.row.astype(np.int64)),
                       torch.tensor(graph.col.astype(np.int64))), num_nodes=data.n),
            self.parts)
        self.layers = torch.nn.ModuleList()
        dims = [data.width] + [options.hidden] * (options.layers - 1) + [data.classes]
        for a, b in zip(dims, dims[1:]):
            self.layers.append(torch.nn.ModuleList([Linear(a, b, True), Linear(a, b)]))
        self.optimizer = torch.optim.Adam(self.layers.parameters(), lr=0.01)
        self.prepare()

    def step(self, h, labels, mask, aggregate):
        self.optimizer.zero_grad()
        for i, (own, neighbours) in enumerate(self.layers):
            narrow = neighbours.weight.shape[1] <= neighbours.weight.shape[0]
            sums = aggregate(neighbours(h)) if narrow else neighbours(aggregate(h))
            h = own(h) + sums
            if i < len(self.layers) - 1:
                h = F.dropout(F.relu(h), 0.5)
        F.cross_entropy(h[mask], labels[mask]).backward()
        self.optimizer.step()

    def measure(self):
        times = []
        for _ in range(self.options.epochs + 1):
            start = time.perf_counter()
            self.epoch()
            times.append(time.perf_counter() - start)
        return statistics.median(times[1:])


class ScipyClusters(Clusters):
    def prepare(self):
        parts = self.assignment.numpy()
        self.members = [np.flatnonzero(parts == part) for part in range(self.parts)]

    def epoch(self):
        order = np.random.permutation(self.parts)
        for first in range(0, self.parts, self.batch):
            rows = np.concatenate([self.members[p] for p in order[first:first + self.batch]])
            part = self.data.graph[rows][:, rows]
            degrees = np.maximum(np.diff(part.indptr), 1)
            mean = sp.diags((1 / degrees).astype(np.float32)) @ part
            matrix, transposed = csr(mean), csr(mean.T)
            rows = torch.tensor(rows)
            self.step(self.features[rows], self.data.labels[rows], self.mask[rows],
                      lambda h: Product.apply(matrix, transposed, h))


class PygClusters(Clusters):
    def prepare(self):
        from torch_geometric.data import Data
        from torch_geometric.loader import ClusterData, ClusterLoader
        assignment = self.assignment

        class Parts(ClusterData):
            def _metis(self, edge_index, num_nodes):
                return assignment

        graph = self.data.graph.tocoo()
        edges = torch.stack([torch.tensor(graph.row.astype(np.int64)),
                             torch.tensor(graph.col.astype(np.int64))])
        parts = Parts(Data(x=self.features, edge_index=edges, y=self.data.labels, mask=self.mask),
                      self.parts, log=False)
        self.loader = ClusterLoader(parts, batch_size=self.batch, shuffle=True)

    def epoch(self):
        for batch in self.loader:
            n = batch.num_nodes
            edges = EdgeIndex(batch.edge_index, sparse_size=(n, n)).sort_by("row")[0]
            degrees = torch.bincount(edges[0].as_tensor(), minlength=n).clamp(min=1)[:, None]
            edges = EdgeIndex(edges.as_tensor(), sparse_size=(n, n), sort_order="row",
                              is_undirected=True)
            self.step(batch.x, batch.y, batch.mask, lambda h: edges.matmul(h) / degrees)


class Starling:
    form = "auto"

    def __init__(self, program, data, options):
        self.command = [
            program, "train", data.directory, "--quiet", "--epochs", str(4 * options.epochs),
            "--model", options.model, "--hidden", str(options.hidden), "--layers",
            str(options.layers), "--workers", str(torch.get_num_threads()), "--input-dropout", "0",
            "--no-cache-aggregate", "--weight-decay", "0", "--bias", "--normalize-features", "none",
            "--device", data.device]
        if options.model == "sage":
            self.command += ["--aggregator", options.aggregator]
        if options.model in ATTENTION:
            self.command += ["--heads", str(options.heads), "--out-heads", "1",
                             "--attention-dropout", "0", "--residual", "none"]
        if options.model == "rgcn":
            self.command += ["--bases", str(options.bases)] if options.bases else []
        if options.clusters:
            self.command += ["--batches", "clusters:" + options.clusters]
        if options.instructions:
            self.command += ["--instructions", options.instructions]
        self.command += options.starling.split()

    def measure(self):
        with tempfile.NamedTemporaryFile() as log:
            subprocess.run(self.command + ["--log", log.name], check=True, stdout=subprocess.DEVNULL)
            return json.loads(log.read().splitlines()[-1])["epoch_seconds_median"]


def peak(command):
    """GB that a process of its own takes at most; "-" where it fails."""
    measure = ("import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=2);"
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)")
    done = subprocess.run([sys.executable, "-c", measure, *command], stdout=subprocess.PIPE)
    return "-" if done.returncode else f"{int(done.stdout) * 1024 / 1e9:.2f} GB"


def peak_of(name, contestant, program, directory, options):
    if name == "Starling":
        return peak(contestant.command)
    words = ("model", "aggregator", "hidden", "layers", "heads", "bases", "device")
    return peak([sys.executable, sys.argv[0], program, directory, "--only", name,
                 *(f"--{word}={getattr(options, word)}" for word in words)])


def draw_relations(directory, count, folder):
    """A dataset of the same files in `folder`, with relations at random."""
    if os.path.lexists(os.path.join(directory, "edge_types.npy")):
        sys.exit(f"peers.py: {directory} has edge_types.npy (expected no --relations, or none)")
    indices = os.path.join(directory, "indices.npy")
    if not os.path.exists(indices):
        sys.exit(f"peers.py: {directory} has no indices.npy (expected a directory that starling convert "
                 "writes)")
    target = os.path.join(folder, os.path.basename(directory.rstrip("/")))
    os.mkdir(target)
    for name in os.listdir(directory):
        os.symlink(os.path.abspath(os.path.join(directory, name)), os.path.join(target, name))
    entries = len(np.load(indices, mmap_mode="r"))
    kind = np.uint8 if count <= 256 else np.uint16
    np.save(os.path.join(target, "edge_types.npy"),
            np.random.default_rng(0).integers(0, count, entries, kind))
    return target


def compare(program, directory, options):
    data = Dataset(directory, options.device, options.model == "rgcn")
    options.degrees = torch.tensor(np.diff(data.graph.indptr).astype(np.float32)).to(options.device)
    if options.only:
        Peer(options.only, data, options).epoch()
        return
    contestants = {"Starling": Starling(program, data, options)}
    if options.clusters and not dgl:
        sys.exit("peers.py: --clusters needs dgl, for METIS")
    if options.clusters:
        contestants["torch"] = ScipyClusters(data, options)
        contestants["PyG"] = PygClusters(data, options)
    else:
        for name in RGCN if options.model == "rgcn" else ADJACENCIES:
            if name in ATTENTION.get(options.model, RGCN) and (
                    name != "DGL" or dgl and options.device == "cpu"):
                try:
                    contestants[name] = Peer(name, data, options)
                except (RuntimeError, ValueError) as error:  # no memory, no operation, no form of features
                    print(f"{name} is left out: {str(error).splitlines()[0]}", file=sys.stderr)
    times = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, contestant in contestants.items():
            times[name].append(contestant.measure())
    own = statistics.median(times["Starling"])
    peaks = {name: ", " + peak_of(name, contestants[name], program, directory, options)
             if options.memory else "" for name in times}
    words = [options.model, options.aggregator if options.model == "sage" else "",
             f"bases {options.bases}" if options.bases else "",
             "clusters " + options.clusters if options.clusters else "", options.instructions]
    print(f"{data.name}, {' '.join(word for word in words if word)}, {options.layers} layers, hidden "
          f"{options.hidden}, {options.device}")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        form = getattr(contestants[name], "form", "dense")
        print(f"  {name:9} {median:.4f} s ({median / own:.2f} x), rounds {min(seconds):.4f} to "
              f"{max(seconds):.4f}, features {form}{peaks[name]}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description="Seconds per epoch of the same model in Starling and its peers, in turn.")
    parser.add_argument("program", metavar="STARLING")
    parser.add_argument("datasets", metavar="DATASET", nargs="+")
    parser.add_argument("--model", default="gcn", choices=[*KINDS, *ATTENTION, "rgcn"])
    parser.add_argument("--aggregator", default="mean", choices=["mean", "max"])
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--bases", type=int, default=0, help="matrices of rgcn's basis; 0: no basis")
    parser.add_argument("--relations", type=int, default=0, help="relations of rgcn that are drawn")
    parser.add_argument("--memory", action="store_true",
                        help="train once more, each in a process of its own, for its peak")
    parser.add_argument("--only", metavar="PEER", help="train a peer for two epochs, print nothing")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clusters", metavar="PARTS,BATCH", default="")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--instructions", default="")
    parser.add_argument("--starling", metavar="OPTIONS", default="", help="more for starling train")
    options = parser.parse_intermixed_args()
    if options.memory and options.clusters:
        parser.error("--memory: expected no --clusters")
    if not 0 <= options.relations <= 65536:
        parser.error(f"--relations {options.relations}: expected 0 to 65536")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    for directory in options.datasets:
        with contextlib.ExitStack() as stack:
            if options.relations:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                directory = draw_relations(directory, options.relations, folder)
            compare(options.program, directory, options)


if __name__ == "__main__":
    main()
