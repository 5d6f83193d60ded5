"""Graphs from arrays and from files."""
import ctypes
import os

import numpy as np

from ._arrays import check_shape, take, take_classes, take_several
from ._library import Handle, Sizes, library

SPLITS = {"train": 1, "val": 2, "test": 3}
DUPLICATES = ("sum", "one")


class Graph:
    """A graph in CSR: row v of `indptr` and `indices` lists the vertices that v aggregates from.

    features: (vertices, columns), or a CSR matrix of SciPy; None: the identity. An array with at
    most 40 % of its items not 0 is read as CSR, as in the files of a dataset. labels: (vertices)
    classes, -1 or NaN for none; or (vertices, columns) of 0 and 1, NaN for not known; with
    numbers=True, numbers to predict. masks: a dict of "train", "val", "test" with a bool for each
    vertex, or with numbers of vertices. duplicates, of an edge that is there k times without
    weights: "sum", it has the weight k; "one", it is one edge. Weights are summed either way.
    edge_features: (entries, columns), a row for each item of `indices`, which then ascend within a
    row of the graph, each once. edge_types: (entries), the relation of each item, a number from 0
    on; a row may then list a vertex once for each relation, and `duplicates` says nothing.
    links: a dict of "val" and "test" with a pair of arrays (k, 2): links and pairs that are none,
    both without edges of the graph, for task="links".
    Arrays are borrowed where they are int64 (indptr, links), int32 (indices, labels), float32 (others) and
    bool, in C order; others are copied, and refused if the type does not hold their values. Do not
    change them while the graph is in use.
    """

    _labels = "classes"  # or "labels" or "numbers"

    def __init__(self, indptr, indices, features=None, labels=None, masks=None, weights=None,
                 numbers=False, classes=0, duplicates="sum", edge_features=None,
                 edge_types=None, links=None):
        self._handle = Handle(library.starling_graph_free)
        self._arrays = []  # which the library borrows
        if duplicates not in DUPLICATES:
            raise ValueError(f"duplicates: {duplicates!r} (expected one of {list(DUPLICATES)})")
        indptr = take(indptr, np.int64, "indptr", None)
        indices = take(indices, np.int32, "indices", None)
        self._n = n = len(indptr) - 1
        library.starling_graph_create(n, len(indices), self._keep(indptr), self._keep(indices),
                                      self._handle.out())
        if weights is not None:
            self._set("weights", self._keep(take(weights, np.float32, "weights", len(indices))))
        elif duplicates == "sum" and edge_features is None and edge_types is None:
            library.starling_graph_count_duplicates(self._handle.pointer)
        if edge_features is not None:
            edge_features = take(edge_features, np.float32, "edge_features", len(indices), None)
            self._set("edge_features", edge_features.shape[1], self._keep(edge_features))
        if edge_types is not None:
            edge_types = take(edge_types, np.int32, "edge_types", len(indices))
            self._set("edge_types", self._keep(edge_types))
        if features is not None:
            self._set_features(features)
        if labels is not None:
            self._set_labels(np.asarray(labels), numbers, classes)
        for split, which in (masks or {}).items():
            self._set_split(split, np.asarray(which))
        for split, (pairs, others) in (links or {}).items():
            self._set_links(split, pairs, others)

    @classmethod
    def open(cls, path):
        """A dataset in any format that the program reads."""
        graph = cls.__new__(cls)
        graph._handle = Handle(library.starling_graph_free)
        library.starling_graph_open(os.fsencode(path), graph._handle.out())
        return graph

    def save(self, path):
        """Write a dataset: a directory, or a file in the format that the name ends with."""
        library.starling_graph_save(self._handle.pointer, os.fsencode(path))

    def _keep(self, array):
        self._arrays.append(array)
        return array.ctypes.data

    def _set(self, what, *arguments):
        getattr(library, "starling_graph_set_" + what)(self._handle.pointer, *arguments)

    def _set_features(self, x):
        if hasattr(x, "tocsr"):
            check_shape(x, "features", self._n, None)
            x = x.tocsr()
            indptr = take(x.indptr, np.int64, "features: indptr", self._n + 1)
            entries = int(indptr[-1])
            if not 0 <= entries <= min(len(x.indices), len(x.data)):
                raise ValueError(f"features: indptr ends at {entries}, expected at most "
                                 f"{min(len(x.indices), len(x.data))}, the length of indices")
            self._set("sparse_features", x.shape[1], entries, self._keep(indptr),
                      self._keep(take(x.indices[:entries], np.int32, "features: indices", None)),
                      self._keep(take(x.data[:entries], np.float32, "features: data", None)))
        else:
            x = take(x, np.float32, "features", self._n, None)
            self._set("features", x.shape[1], self._keep(x))

    def _set_labels(self, labels, numbers, classes):
        if labels.ndim == 2 and labels.shape[1] == 1 and labels.dtype.kind in "iu":
            labels = labels[:, 0]
        if numbers:
            self._labels = "numbers"
            labels = labels[:, None] if labels.ndim == 1 else labels
            labels = take(labels, np.float32, "labels", self._n, None)
        elif labels.ndim == 1:
            labels = take_classes(labels, "labels", self._n)
        else:
            self._labels = "labels"
            labels = take_several(labels, "labels", self._n)
        self._set(self._labels, labels.shape[1] if labels.ndim == 2 else classes,
                  self._keep(labels))

    def _set_split(self, split, which):
        if split not in SPLITS:
            raise ValueError(f"masks: {split!r} (expected one of {list(SPLITS)})")
        if which.dtype == bool:
            mask = take(which, bool, split, self._n)
            self._set("mask", SPLITS[split], self._keep(mask))
        else:
            which = take(which, np.int64, split, None)
            self._set("split", SPLITS[split], which.size, self._keep(which))

    def _set_links(self, split, pairs, others):
        if split not in SPLITS:
            raise ValueError(f"links: {split!r} (expected one of ['val', 'test'])")
        pairs = take(pairs, np.int64, f"links: {split}", None, 2)
        others = take(others, np.int64, f"links: {split} negatives", None, 2)
        self._set("links", SPLITS[split], len(pairs), self._keep(pairs), len(others),
                  self._keep(others))

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
