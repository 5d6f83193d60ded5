"""Graphs from arrays, and from what other packages call a graph."""
import ctypes
import os

import numpy as np

from ._library import Handle, Sizes, library

SPLITS = {"train": 1, "val": 2, "test": 3}


def take(array, kind, name, *shape):
    """The array itself where type and order fit, else a copy that has them."""
    array = np.ascontiguousarray(array, kind)
    if shape and array.shape != shape:
        raise ValueError(f"{name}: shape {array.shape}, expected {shape}")
    return array


class Graph:
    """A graph in CSR: row v of `indptr` and `indices` lists the vertices that v aggregates from.

    features: (vertices, columns), or a CSR matrix of SciPy; None: the identity. An array with at
    most 40 % of its items not 0 is read as CSR, as in the files of a dataset. labels: (vertices)
    integers, -1 for none; or (vertices, columns) of 0 and 1, NaN for not known; with numbers=True,
    numbers to predict. masks: a dict of "train", "val", "test" with a bool for each vertex, or with
    numbers of vertices. Arrays are borrowed where they are int64 (indptr), int32 (indices, labels),
    float32 (others) and bool, in C order; others are copied. Do not change them while the graph is
    in use.
    """

    _labels = "classes"  # or "labels" or "numbers"

    def __init__(self, indptr, indices, features=None, labels=None, masks=None, weights=None,
                 numbers=False, classes=0):
        self._handle = Handle(library.starling_graph_free)
        self._arrays = []  # which the library borrows
        indptr = take(indptr, np.int64, "indptr")
        indices = take(indices, np.int32, "indices")
        self._n = n = len(indptr) - 1
        library.starling_graph_create(n, len(indices), self._keep(indptr), self._keep(indices),
                                      self._handle.out())
        if weights is not None:
            self._set("weights", self._keep(take(weights, np.float32, "weights", len(indices))))
        if features is not None:
            self._set_features(features)
        if labels is not None:
            self._set_labels(np.asarray(labels), numbers, classes)
        for split, which in (masks or {}).items():
            self._set_split(split, np.asarray(which))

    @classmethod
    def open(cls, path):
        """A dataset in any format that the program reads."""
        graph = cls.__new__(cls)
        graph._handle = Handle(library.starling_graph_free)
        library.starling_graph_open(os.fsencode(path), graph._handle.out())
        return graph

    def _keep(self, array):
        self._arrays.append(array)
        return array.ctypes.data

    def _set(self, what, *arguments):
        getattr(library, "starling_graph_set_" + what)(self._handle.pointer, *arguments)

    def _set_features(self, x):
        if hasattr(x, "tocsr"):
            x = x.tocsr()
            self._set("sparse_features", x.shape[1], x.nnz,
                      self._keep(take(x.indptr, np.int64, "features")),
                      self._keep(take(x.indices, np.int32, "features")),
                      self._keep(take(x.data, np.float32, "features")))
        else:
            x = np.asarray(x)
            x = take(x, np.float32, "features", self._n, x.shape[-1])
            self._set("features", x.shape[1], self._keep(x))

    def _set_labels(self, labels, numbers, classes):
        if labels.ndim == 1 and not numbers:
            self._set("classes", classes,
                      self._keep(take(labels, np.int32, "labels", self._n)))
        else:
            labels = labels.reshape(len(labels), -1)
            labels = take(labels, np.float32, "labels", self._n, labels.shape[1])
            self._labels = "numbers" if numbers else "labels"
            self._set(self._labels, labels.shape[1], self._keep(labels))

    def _set_split(self, split, which):
        if split not in SPLITS:
            raise ValueError(f"masks: {split!r} (expected one of {list(SPLITS)})")
        if which.dtype == bool:
            mask = take(which, bool, split, self._n)
            self._set("mask", SPLITS[split], self._keep(mask))
        else:
            which = take(which, np.int64, split)
            self._set("split", SPLITS[split], which.size, self._keep(which))

    def _sizes(self):
        sizes = Sizes()
        library.starling_graph_sizes(self._handle.pointer, ctypes.byref(sizes))
        return sizes

    vertices = property(lambda self: self._sizes().vertices)
    entries = property(lambda self: self._sizes().entries)
    features = property(lambda self: self._sizes().features)
    classes = property(lambda self: self._sizes().classes)

    def __repr__(self):
        s = self._sizes()
        return (f"starling.Graph(vertices={s.vertices}, entries={s.entries}, "
                f"features={s.features}, classes={s.classes})")


def csr_of_edges(n, source, target, weights=None):
    """CSR in which row v has the sources of the edges that end at v."""
    order = np.lexsort((source, target))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=n), out=indptr[1:])
    return indptr, source[order].astype(np.int32), None if weights is None else weights[order]


def host(tensor):
    """A tensor of PyTorch as an array on the same memory."""
    return None if tensor is None else tensor.detach().cpu().numpy()


def from_pyg(data):
    """A graph of a `Data` object of PyTorch Geometric: edge_index, edge_weight, x, y and masks.
    Messages go from edge_index[0] to edge_index[1]."""
    source, target = host(data.edge_index)
    weights = data.edge_weight if "edge_weight" in data else None
    indptr, indices, weights = csr_of_edges(data.num_nodes, source, target, host(weights))
    masks = {split: host(data[split + "_mask"]) for split in SPLITS if split + "_mask" in data}
    x, y = (host(data[name]) if name in data else None for name in ("x", "y"))
    if y is not None and y.ndim == 2 and y.shape[1] == 1 and y.dtype.kind in "iu":
        y = y[:, 0]
    masks = {split: mask[:, 0] if mask.ndim == 2 else mask for split, mask in masks.items()}
    return Graph(indptr, indices, x, y, masks, weights)


def from_dgl(g, features="feat", labels="label"):
    """A graph of a DGLGraph: edges, and the node data that are called so, and train_mask …."""
    source, target = (host(end) for end in g.edges(order="eid"))
    indptr, indices, _ = csr_of_edges(g.num_nodes(), source, target)
    masks = {split: host(g.ndata[split + "_mask"]).astype(bool)
             for split in SPLITS if split + "_mask" in g.ndata}
    return Graph(indptr, indices, host(g.ndata.get(features)), host(g.ndata.get(labels)), masks)


def from_scipy(adjacency, features=None, labels=None, masks=None):
    """A graph of a SciPy matrix; entry (u, v) lets u aggregate from v. Weights that are all 1 are
    left out."""
    a = adjacency.tocsr()
    weights = None if (a.data == 1).all() else a.data
    return Graph(a.indptr, a.indices, features, labels, masks, weights)


def from_ogb(folder):
    """A dataset of the Open Graph Benchmark, as its folder of files: raw/ and split/."""
    return Graph.open(folder)
