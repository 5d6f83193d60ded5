"""Graphs of several types of vertices and edges."""
import numpy as np

from ._arrays import check_ends, csr_of_edges, host, mask_of, take
from ._graph import SPLITS, Graph


class Blocks:
    """Features in CSR: each type has columns of its own, its features and a column of ones; or, without
    features, a column for each of its vertices."""
    ndim = 2

    def __init__(self, features, counts):
        lengths, indices, data, column = [np.zeros(1, np.int64)], [], [], 0
        for x, count in zip(features, counts):
            values = np.ones((count, 1), np.float32)
            if x is None:
                columns, width = np.arange(count, dtype=np.int32)[:, None], count
            else:
                values = np.append(x, values, axis=1)
                width = values.shape[1]
                columns = np.broadcast_to(np.arange(width, dtype=np.int32), values.shape)
            kept = values != 0
            lengths.append(kept.sum(axis=1))
            indices.append(columns[kept] + np.int32(column))
            data.append(values[kept])
            column += width
        self.indptr, self.indices = np.cumsum(np.concatenate(lengths)), np.concatenate(indices)
        self.data, self.shape = np.concatenate(data), (sum(counts), column)

    def tocsr(self):
        return self


def spread(own, n, first, missing):
    """An array of all vertices, of which those from `first` on have their own rows."""
    everywhere = np.full((n, *own.shape[1:]), missing, own.dtype)
    everywhere[first:first + len(own)] = own
    return everywhere


def join_edges(types):
    """Return an array (2, edges) of sources and targets, and the number of edges of each type. For each
    type of edges, `types` has its name, an array (2, edges), and the first vertices and the numbers of
    vertices of both ends."""
    parts = []
    for name, edges, first, counts in types:
        check_ends(name, edges, counts)
        parts.append(edges + np.array(first)[:, None])
    return np.concatenate(parts, 1), [edges.shape[1] for edges in parts]


def edges_of(data, link, first, counts):
    """Return what join_edges takes of a type of edges."""
    name, ends = f"edge_index of {link}", (link[0], link[2])
    extra = sorted({"edge_weight", "edge_attr"} & set(data[link].keys()))
    if extra:
        raise ValueError(f"{link}: has {extra}, expected edge_index alone (del takes them out)")
    edges = take(host(data[link].edge_index, name), np.int64, name, 2, None)
    return name, edges, [first[kind] for kind in ends], [counts[kind] for kind in ends]


def labels_of(y, numbers):
    """Classes as int64, and all else as float32, with what says that a vertex has no label."""
    own = host(y, "y")
    if own.ndim == 2 and own.shape[1] == 1 and own.dtype.kind in "iu":
        own = own[:, 0]
    if own.ndim == 1 and own.dtype.kind in "iu" and not numbers:
        return own.astype(np.int64), -1
    return own.astype(np.float32), np.nan


def from_hetero(data, numbers=False):
    """A graph of a `HeteroData` object of PyTorch Geometric: edge_index of each type of edges, x of each
    type of vertices, y and masks of one of them. Vertices have the order of data.node_types; the r-th
    of data.edge_types is relation r."""
    kinds, links = data.node_types, data.edge_types
    if not kinds or not links:
        raise ValueError("data: a HeteroData object without vertices or edges")
    counts = {kind: data[kind].num_nodes for kind in kinds}
    for kind, count in counts.items():
        if count is None:
            raise ValueError(f"data: num_nodes of {kind!r} is None, expected x or num_nodes")
    first = dict(zip(kinds, np.cumsum([0, *counts.values()]).tolist()))
    n = sum(counts.values())
    edges, lengths = join_edges(edges_of(data, link, first, counts) for link in links)
    relations = np.repeat(np.arange(len(links), dtype=np.int32), lengths)
    indptr, indices, _, _, relations = csr_of_edges(n, *edges, types=relations)
    features = [take(host(data[kind].x, "x"), np.float32, f"x of {kind}", counts[kind], None)
                if "x" in data[kind] else None for kind in kinds]
    labelled = [kind for kind in kinds if "y" in data[kind]]
    if len(labelled) > 1:
        raise ValueError(f"y: {labelled} have labels, expected one type")
    labels, masks = None, {}
    for kind in labelled:
        own, missing = labels_of(data[kind].y, numbers)
        labels = spread(own, n, first[kind], missing)
        masks = {split: spread(mask_of(host(data[kind][split + "_mask"], split), split), n,
                               first[kind], False)
                 for split in SPLITS if split + "_mask" in data[kind]}
    return Graph(indptr, indices, Blocks(features, counts.values()), labels, masks,
                 numbers=numbers, edge_types=relations)
