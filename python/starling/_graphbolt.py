"""Graphs from dataset folders of DGL's GraphBolt."""
import os

import numpy as np

from ._arrays import check_shape, csr_of_edges, take
from ._doors import AUTO, find, find_weights
from ._graph import Graph
from ._graphbolt_files import listed, need, read_array, read_edges, read_metadata
from ._graphbolt_tasks import are_links, find_task, labels_and_masks, links_of, read_items
from ._hetero import Blocks, join_edges


class Kinds:
    """The types of vertices and edges. Vertices are numbered type by type, in the order of names, and
    types of edges are relations in the order of names, as GraphBolt numbers both. One type of each may
    go without a name."""

    def __init__(self, graph, where):
        nodes, edges = (listed(graph, name, where) for name in ("nodes", "edges"))
        if not nodes or not edges:
            raise ValueError(f"{where}: has no {'edges' if nodes else 'nodes'}, expected nodes and "
                             "edges")
        self.several = len(nodes) > 1 or len(edges) > 1
        self.counts, self.edges = {}, {}
        for found, entries in ((self.counts, nodes), (self.edges, edges)):
            for place, entry in entries:
                self.add(found, entry, place)
        self.counts = {kind: self.counts[kind] for kind in sorted(self.counts, key=str)}
        self.edges = {kind: self.edges[kind] for kind in sorted(self.edges, key=str)}
        starts = np.cumsum([0, *self.counts.values()]).tolist()
        self.first, self.vertices = dict(zip(self.counts, starts)), starts[-1]
        for kind, (place, _) in self.edges.items():
            self.ends(kind, place)

    def add(self, found, entry, place):
        """Add a type of vertices or of edges."""
        count = need(entry, "num", int, place) if found is self.counts else 0
        if count < 0:
            raise ValueError(f"{place}: num is {count}, expected how many vertices there are")
        named = self.several or not isinstance(entry, dict) or entry.get("type") is not None
        kind = need(entry, "type", str, place) if named else None
        if kind in found:
            raise ValueError(f"{place}: type {kind!r} is there twice, expected it once")
        found[kind] = count if found is self.counts else (place, entry)

    def check(self, kind, known, where):
        """Return a type that is known. An entry may leave it out where there is only one."""
        if kind is None and not self.several:
            return next(iter(known))
        if not isinstance(kind, str) or kind not in known:
            names = [name for name in known if name is not None]
            raise ValueError(f"{where}: type is {kind!r}, expected "
                             f"{f'one of {names}' if names else 'none, since graph has none'}")
        return kind

    def place(self, kind, where):
        """Return the first vertex of a type, and how many there are."""
        kind = self.check(kind, self.counts, where)
        return self.first[kind], self.counts[kind]

    def ends(self, kind, where):
        """Return the first vertices and the numbers of vertices of both ends of a type of edges."""
        kind = self.check(kind, self.edges, where)
        ends = kind.split(":") if self.several else [next(iter(self.counts))] * 3
        if len(ends) != 3 or not {ends[0], ends[2]} <= set(self.counts):
            raise ValueError(f"{where}: type is {kind!r}, expected SOURCE:NAME:TARGET with types of "
                             f"{list(self.counts)}")
        return tuple(zip(self.place(ends[0], where), self.place(ends[2], where)))


class Features(dict):
    """{name: (where, entry)} of features, whose items are read when they are asked for."""

    def __init__(self, folder, rows):
        super().__init__()
        self.folder, self.rows = folder, rows

    def __getitem__(self, name):
        where, entry = super().__getitem__(name)
        path, array = read_array(self.folder, entry, where)
        array = array[:, None] if array.ndim == 1 else array
        check_shape(array, path, self.rows, None)
        return take(array, np.float32, path, self.rows, None)


def find_features(folder, metadata, kinds, rows, where):
    """Return {type: Features} of vertices and of edges. `rows` has the number of edges of each type."""
    found = {"node": {kind: Features(folder, count) for kind, count in kinds.counts.items()},
             "edge": {kind: Features(folder, rows[kind]) for kind in kinds.edges}}
    entries = listed(metadata, "feature_data", where)
    entries += listed(metadata["graph"], "feature_data", f"{where}: graph")
    for place, entry in entries:
        domain, name = need(entry, "domain", str, place), need(entry, "name", str, place)
        if domain == "graph":
            continue  # of the whole graph
        if domain not in found:
            raise ValueError(f"{place}: domain is {domain!r}, expected 'node' or 'edge'")
        own = found[domain][kinds.check(entry.get("type"), found[domain], place)]
        if name in own:
            raise ValueError(f"{place}: name {name!r} is there twice, expected it once")
        own[name] = (place, entry)
    return found["node"], found["edge"]


def vertex_features(by_kind, name):
    """Return the features of all vertices: with several types, columns of their own for each."""
    names = sorted(set().union(*by_kind.values()))
    if name == AUTO and names and "feat" not in names:
        raise KeyError(f"features: 'feat' is not there (expected one of {names}, or None)")
    if name not in (AUTO, None) and name not in names:
        raise KeyError(f"features: {name!r} is not there (expected one of {names})")
    name = "feat" if name == AUTO else name
    arrays = [own[name] if name in own else None for own in by_kind.values()]
    if len(arrays) == 1 or name is None:
        return arrays[0]
    return Blocks(arrays, [own.rows for own in by_kind.values()])


def edge_data(by_kind, weights, edge_features, several):
    """Return weights and features of edges."""
    if not several:
        own = next(iter(by_kind.values()))
        features = find(own, edge_features, None, "edge_features")
        own.pop(edge_features, None)
        return find_weights(own, weights, ("weight", "w", "edge_weight")), features
    names = sorted(set().union(*by_kind.values()))
    if names and weights == AUTO:
        raise ValueError(f"edges have relations and {names}: expected weights=None to leave them out")
    if weights not in (AUTO, None) or edge_features is not None:
        raise ValueError("weights, edge_features: expected None, since edges have relations")
    return None, None


def from_graphbolt(folder, task=0, features=AUTO, weights=AUTO, numbers=False, duplicates="sum",
                   edge_features=None):
    """A graph of a dataset folder of DGL's GraphBolt (OnDiskDataset), which metadata.yaml describes.
    DGL is not needed, but PyYAML, and PyTorch for files of torch.save. Messages go from the first to
    the second vertex of an edge.

    task: the number or the name of a task; None: no labels, no splits. Sets with seeds (k) and labels
    (k) or (k, columns) become labels and masks. Sets with seeds (k, 2), and negatives in negative_dsts
    (k, columns) or by labels and indexes, become links; training links are all edges of the graph.
    features: the name of an array (vertices, columns) of the domain node, "feat" if there. weights,
    edge_features: names of arrays of the domain edge, with a row for each edge. numbers, duplicates: as
    of Graph. An array with in_memory: false stays in its file if it is float32.

    Several types of vertices are numbered type by type, in the order of names, and have columns of
    their own. Several types of edges are relations, in the order of names.
    Errors: ValueError, TypeError, KeyError, FileNotFoundError or ImportError, with a sentence that names
    the file."""
    folder = os.fspath(folder)
    where, metadata = read_metadata(folder)
    kinds = Kinds(need(metadata, "graph", dict, where), f"{where}: graph")
    edges, lengths = join_edges((*read_edges(folder, entry, place), *kinds.ends(kind, place))
                                for kind, (place, entry) in kinds.edges.items())
    rows = dict(zip(kinds.edges, lengths))
    of_vertices, of_edges = find_features(folder, metadata, kinds, rows, where)
    where, chosen = find_task(metadata, task, where)
    items = read_items(folder, chosen, where)
    labels, masks, links = None, {}, {}
    if are_links(items):
        links = links_of(items, kinds, edges)
    else:
        labels, masks = labels_and_masks(items, kinds, numbers)
    classes = need(chosen, "num_classes", int, where) if chosen.get("num_classes") else 0
    types = np.repeat(np.arange(len(rows)), list(rows.values())) if kinds.several else None
    w, ef = edge_data(of_edges, weights, edge_features, kinds.several)
    indptr, indices, w, ef, types = csr_of_edges(kinds.vertices, *edges, w, ef, types)
    return Graph(indptr, indices, vertex_features(of_vertices, features), labels, masks, w, numbers,
                 classes, duplicates, ef, types, links)
