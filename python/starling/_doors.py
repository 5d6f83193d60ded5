"""Graphs from what other packages call a graph."""
import os
import warnings

import numpy as np

from ._arrays import check_shape, csr_of_edges, host, mask_of, refuse, take
from ._graph import SPLITS, Graph
from ._hetero import from_hetero

AUTO = "auto"  # the usual name, where there is one of that name


def find(arrays, name, usual, what):
    """The array that is called so. None, or none of the usual name: None."""
    if name == AUTO:
        name = usual if usual in arrays else None
    if name is None:
        return None
    if name not in arrays:
        raise KeyError(f"{what}: {name!r} is not there (expected one of {sorted(arrays)})")
    return host(arrays[name], name)


def find_masks(arrays):
    """The masks that are called train_mask and so on."""
    return {split: mask_of(host(arrays[split + "_mask"], split + "_mask"), split + "_mask")
            for split in SPLITS if split + "_mask" in arrays}


def find_weights(arrays, name, usual):
    """Weights of edges: the array that is called so; for "auto" the only one, if its name is a
    usual one. None that is there is left out unless the caller says so."""
    if name == AUTO:
        name = next(iter(arrays), None)
        if name is not None and (len(arrays) > 1 or name not in usual):
            raise ValueError(f"edges have {sorted(arrays)}: expected weights= one of these, or "
                             "weights=None to leave them out")
    weights = find(arrays, name, None, "weights")
    if weights is not None and weights.ndim == 2 and weights.shape[1] == 1:
        weights = weights[:, 0]
    if weights is not None and weights.ndim != 1:
        raise ValueError(f"{name}: shape {weights.shape}, expected one weight for each edge, or "
                         "weights=None to leave them out")
    return weights


def find_edge_features(arrays, name, usual, weights):
    """Features of edges: the array that is called so; for "auto" the one of the usual name, if it has
    several columns and no weights."""
    if name == AUTO:
        several = usual in arrays and arrays[usual].ndim == 2 and arrays[usual].shape[1] > 1
        name = usual if several and weights != usual else None
    found = find(arrays, name, None, "edge_features")
    if found is not None and found.ndim == 1:
        found = found[:, None]
    if found is not None and found.ndim != 2:
        raise ValueError(f"{name}: shape {found.shape}, expected a row of features for each edge")
    return name, found


def find_edge_types(arrays, name, usual):
    """Relations of edges: the array that is called so; for "auto" the one of the usual name."""
    if name == AUTO:
        name = usual if usual in arrays else None
    return find(arrays, name, None, "edge_types")


def warn_of_parallel(indptr, indices):
    """Warn that two vertices have edges of several relations: a model that reads none takes them for one
    edge."""
    again = np.flatnonzero(np.diff(indices) == 0) + 1
    count = len(np.setdiff1d(again, indptr))
    if count:
        warnings.warn(f"{count} edges are there once more, by another relation: models but rgcn take "
                      "them for one (edge_types=None: as duplicates= says)", stacklevel=3)


def check_duplicates(n, source, target, duplicates, name):
    """Features that nobody named do not take the multiplicity of doubled edges away."""
    if name is not None and duplicates == "sum" and \
            len(np.unique(np.asarray(target, np.int64) * n + source)) < len(source):
        raise ValueError(f"{name}: some edges are there twice, expected edge_features={name!r}, which "
                         "sums their features, or edge_features=None")


def find_links(links):
    """Links and pairs that are none, of what RandomLinkSplit of PyTorch Geometric returns."""
    found = {}
    for split, data in (links or {}).items():
        pairs = host(data.edge_label_index, f"{split}: edge_label_index")
        is_link = host(data.edge_label, f"{split}: edge_label") > 0
        check_shape(pairs, f"{split}: edge_label_index", 2, len(is_link))
        found[split] = (pairs.T[is_link], pairs.T[~is_link])
    return found


def from_pyg(data, features=AUTO, labels=AUTO, weights=AUTO, numbers=False, duplicates="sum",
             edge_features=AUTO, edge_types=AUTO, links=None):
    """A graph of a `Data` object of PyTorch Geometric, or of `HeteroData` (_hetero.py): edge_index, x, y, masks, edge_type, and
    edge_weight or edge_attr of one column; edge_attr of several columns are features of edges.
    Messages go from edge_index[0] to edge_index[1]. links: {"val": data, "test": data}, with
    edge_label_index and edge_label of RandomLinkSplit; `data` is its training graph then."""
    if type(data).__name__ == "HeteroData":
        if (features, labels, weights, edge_features, edge_types) != (AUTO,) * 5 or links:
            raise ValueError("data: a HeteroData object, which takes numbers= alone")
        return from_hetero(data, numbers)
    arrays = {name: value for name, value in data.to_dict().items() if value is not None}
    if "edge_index" not in arrays:
        raise ValueError(f"data: has {sorted(arrays)}, expected edge_index, not adj_t (leave "
                         "ToSparseTensor out)")
    if data.num_nodes is None:
        raise ValueError("data: num_nodes is None, expected one kind of vertices")
    edges = host(arrays["edge_index"], "edge_index")
    check_shape(edges, "edge_index", 2, None)
    called, ef = find_edge_features(arrays, edge_features, "edge_attr", weights)
    types = find_edge_types(arrays, edge_types, "edge_type")
    check_duplicates(data.num_nodes, *edges, duplicates,
                     called if edge_features == AUTO and types is None else None)
    own = {name: arrays[name] for name in ("edge_weight", "edge_attr", "edge_type")
           if name in arrays and name != called and not (name == "edge_type" and types is not None)}
    if weights not in (AUTO, None):
        own = arrays
    w = find_weights(own, weights, ("edge_weight", "edge_attr"))
    indptr, indices, w, ef, types = csr_of_edges(data.num_nodes, *edges, w, ef, types)
    if types is not None and edge_types == AUTO:
        warn_of_parallel(indptr, indices)
    return Graph(indptr, indices, find(arrays, features, "x", "features"),
                 find(arrays, labels, "y", "labels"), find_masks(arrays), w, numbers,
                 duplicates=duplicates, edge_features=ef, edge_types=types,
                 links=find_links(links))


def load_dgl(path):
    """The graph in a file of dgl.save_graphs."""
    import dgl
    with open(path, "rb"):  # DGL's own error does not name the file
        graphs, _ = dgl.load_graphs(os.fspath(path))
    if len(graphs) != 1:
        raise ValueError(f"{os.fspath(path)}: {len(graphs)} graphs (expected one)")
    return graphs[0]


def from_dgl(g, features=AUTO, labels=AUTO, weights=AUTO, numbers=False, duplicates="sum",
             edge_features=None, edge_types=AUTO):
    """A graph of a DGLGraph: edges, the node data that are called so ("feat" and "label"),
    train_mask …, the edge data "weight", "w" or "edge_weight", the edge data edge_features, and
    the relations that dgl.to_homogeneous leaves in dgl.ETYPE. `g` may be the path of a file of
    dgl.save_graphs with one graph."""
    if isinstance(g, (str, os.PathLike)):
        g = load_dgl(g)
    if not g.is_homogeneous or g.is_block:
        raise ValueError("g: has several kinds of vertices or edges, or is a block, expected a "
                         "homogeneous graph (dgl.to_homogeneous makes one)")
    nodes, edges = ({name: data[name] for name in data.keys() if name not in ("_ID", "_TYPE")}
                    for data in (g.ndata, g.edata))
    usual = {"features": "feat", "labels": "label"}
    names = {"features": usual["features"] if features == AUTO else features,
             "labels": usual["labels"] if labels == AUTO else labels}
    left = sorted(set(nodes) - set(names.values()) - {split + "_mask" for split in SPLITS})
    for what, given in (("features", features), ("labels", labels)):
        if given == AUTO and usual[what] not in nodes and left:
            raise KeyError(f"{what}: {usual[what]!r} is not there (expected one of {left}, or None)")
    source, target = (host(end, "edges") for end in g.edges(order="eid"))
    called, ef = find_edge_features(edges, edge_features, None, weights)
    types = find_edge_types({name: g.edata[name] for name in g.edata.keys()}, edge_types, "_TYPE")
    others = {name: array for name, array in edges.items() if name not in (called, edge_types)}
    indptr, indices, w, ef, types = csr_of_edges(
        g.num_nodes(), source, target,
        find_weights(others, weights, ("weight", "w", "edge_weight")), ef, types)
    if types is not None and edge_types == AUTO:
        warn_of_parallel(indptr, indices)
    return Graph(indptr, indices, find(nodes, features, "feat", "features"),
                 find(nodes, labels, "label", "labels"), find_masks(nodes), w, numbers,
                 duplicates=duplicates, edge_features=ef, edge_types=types)


def check_compressed(a, name):
    """Refuse arrays of a square CSR or CSC matrix that SciPy would read past their ends."""
    n = a.shape[0]
    indptr = take(a.indptr, np.int64, f"{name}: indptr", n + 1)
    room = min(len(a.indices), len(a.data))
    if indptr[0] != 0 or (np.diff(indptr) < 0).any() or indptr[-1] > room:
        raise ValueError(f"{name}: indptr goes from {indptr[0]} to {indptr[-1]}, expected 0 to at "
                         f"most {room}, the length of indices, never falling")
    indices = np.asarray(a.indices)[:indptr[-1]]
    wrong = (indices < 0) | (indices >= n)
    if wrong.any():
        refuse(f"{name}: indices", indices, wrong, f"0 to {n - 1}")


def from_scipy(adjacency, features=None, labels=None, masks=None, numbers=False,
               duplicates="sum"):
    """A graph of a SciPy matrix; entry (u, v) is the edge u -> v, so that v aggregates from u, as in
    scipy.sparse.csgraph, NetworkX, PyG and DGL. For A @ X give A.T. Weights that are all 1 are left
    out."""
    a = adjacency
    if not hasattr(a, "tocsr"):
        raise TypeError(f"adjacency: {type(a).__name__}, expected a sparse matrix of SciPy")
    if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"adjacency: shape {a.shape}, expected a square matrix")
    if a.format == "coo":  # its tocsc() sums
        indptr, indices, weights = csr_of_edges(a.shape[0], a.row, a.col, a.data)[:3]
    else:
        if a.format in ("csr", "csc"):
            check_compressed(a, "adjacency")
        a = a.tocsc()  # a column has the sources of edges to a vertex
        indptr = a.indptr
        indices, weights = a.indices[:indptr[-1]], a.data[:indptr[-1]]
    weights = None if (weights == 1).all() else weights
    return Graph(indptr, indices, features, labels, masks, weights, numbers, duplicates=duplicates)


def attributes(items, name, what):
    """The attribute of each item, which is (what it is called, its dict)."""
    missing = next((label for label, own in items if name not in own), None)
    if missing is not None:
        names = sorted({str(key) for _, own in items for key in own})
        raise KeyError(f"{what}: {name!r} is not there for {missing} (expected one of {names})")
    return np.array([own[name] for _, own in items])


def from_networkx(graph, features=None, labels=None, masks=None, weights=AUTO, numbers=False,
                  duplicates="sum"):
    """A graph of NetworkX; vertices have the order of graph.nodes. Messages go from u to v along an
    edge (u, v), and in both directions of an undirected one. features, labels: arrays, or names of
    attributes of the nodes. weights: the name of an attribute of the edges; "auto": "weight", where
    an edge has it."""
    number = {node: v for v, node in enumerate(graph)}
    nodes = [(f"node {node!r}", own) for node, own in graph.nodes(data=True)]
    edges = [(u, v, own) for u, v, own in graph.edges(data=True)]
    if isinstance(features, str):
        features = attributes(nodes, features, "features").reshape(len(nodes), -1)
    if isinstance(labels, str):
        labels = attributes(nodes, labels, "labels")
    if weights == AUTO:
        weights = "weight" if any("weight" in own for _, _, own in edges) else None
    w = None
    if weights is not None:
        w = attributes([(f"edge {u!r} - {v!r}", own) for u, v, own in edges], weights, "weights")
    source, target = (np.array([number[edge[end]] for edge in edges], np.int64) for end in (0, 1))
    if not graph.is_directed():
        apart = source != target
        source, target = np.append(source, target[apart]), np.append(target, source[apart])
        w = None if w is None else np.append(w, w[apart])
    indptr, indices, w = csr_of_edges(len(number), source, target, w)[:3]
    return Graph(indptr, indices, features, labels, masks, w, numbers, duplicates=duplicates)


def from_ogb(folder):
    """A dataset of the Open Graph Benchmark, as its folder of files: raw/ and split/."""
    return Graph.open(folder)
