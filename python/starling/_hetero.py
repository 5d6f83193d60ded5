"""Graphs of several types of vertices and edges."""
import numpy as np

from ._arrays import csr_of_edges, mask_of, take
from ._graph import SPLITS, Graph


class Blocks:
    """Features in CSR: each type has columns of its own, its features and a column of ones; or, without
    features, a column for each of its vertices."""
    ndim = 2

    def __init__(self, features, counts):
        indptr, indices, data, column = [np.zeros(1, np.int64)], [], [], 0
        for x, count in zip(features, counts):
            if x is None:
                columns, values, width = np.arange(count)[:, None], np.ones((count, 1)), count
            else:
                values = np.append(x, np.ones((count, 1)), axis=1)
                width = values.shape[1]
                columns = np.broadcast_to(np.arange(width), values.shape)
            kept = values != 0
            indptr.append(indptr[-1][-1] + np.cumsum(kept.sum(axis=1)))
            indices.append((columns[kept] + column).astype(np.int32))
            data.append(values[kept].astype(np.float32))
            column += width
        self.indptr, self.indices = np.concatenate(indptr), np.concatenate(indices)
        self.data, self.shape = np.concatenate(data), (sum(counts), column)

    def tocsr(self):
        return self


def spread(own, n, first, missing):
    """An array of all vertices, of which those from `first` on have their own rows."""
    everywhere = np.full((n, *own.shape[1:]), missing, own.dtype)
    everywhere[first:first + len(own)] = own
    return everywhere


def from_hetero(data, host, numbers=False):
    """A graph of a `HeteroData` object of PyTorch Geometric: edge_index of each type of edges, x of each
    type of vertices, y and masks of one of them. Vertices have the order of data.node_types; the r-th
    of data.edge_types is relation r."""
    kinds, links = data.node_types, data.edge_types
    if not kinds or not links:
        raise ValueError("data: a HeteroData object without vertices or edges")
    counts = [data[kind].num_nodes for kind in kinds]
    if None in counts:
        raise ValueError(f"data: num_nodes of {kinds[counts.index(None)]!r} is None, expected x or "
                         "num_nodes")
    first = dict(zip(kinds, np.cumsum([0, *counts[:-1]])))
    n, ends = int(sum(counts)), ([], [])
    for source, name, target in links:
        edges = host(data[source, name, target].edge_index, "edge_index")
        for end, kind, of in zip(ends, (source, target), edges):
            count = counts[kinds.index(kind)]
            if len(of) and not 0 <= of.min() <= of.max() < count:
                raise ValueError(f"edge_index of {(source, name, target)}: {of.min()} to {of.max()}, "
                                 f"expected 0 to {count - 1}")
            end.append(np.asarray(of, np.int64) + first[kind])
    types = np.repeat(np.arange(len(links), dtype=np.int32), [len(of) for of in ends[0]])
    indptr, indices, _, _, types = csr_of_edges(n, *map(np.concatenate, ends), types=types)
    features = [take(host(data[kind].x, "x"), np.float32, f"x of {kind}", None, None)
                if "x" in data[kind] else None for kind in kinds]
    labelled = [kind for kind in kinds if "y" in data[kind]]
    if len(labelled) > 1:
        raise ValueError(f"y: {labelled} have labels, expected one type")
    labels, masks = None, {}
    for kind in labelled:
        own = host(data[kind].y, "y")
        whole = own.ndim == 1 and own.dtype.kind in "iu" and not numbers
        labels = spread(own if whole else own.astype(np.float32), n, first[kind],
                        -1 if whole else np.nan)
        masks = {split: spread(mask_of(host(data[kind][split + "_mask"], split), split), n,
                               first[kind], False)
                 for split in SPLITS if split + "_mask" in data[kind]}
    return Graph(indptr, indices, Blocks(features, counts), labels, masks, numbers=numbers,
                 edge_types=types)
