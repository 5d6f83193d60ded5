"""The tasks of a dataset folder of DGL's GraphBolt: labels of vertices, or links."""
import collections

import numpy as np

from ._arrays import check_ends, check_shape, refuse, take
from ._graphbolt_files import listed, need, read_array
from ._hetero import labels_of

SETS = {"train_set": "train", "validation_set": "val", "test_set": "test"}
SEEDS = ("seeds", "seed_nodes", "node_pairs")

# An item of a set: its place in metadata.yaml, its type, and {name: (path, array)} of its data.
Item = collections.namedtuple("Item", "split where kind data seeds")


def find_task(metadata, task, where):
    """Return (where, task) of the number or the name; none for None, and for 0 where no task is."""
    tasks = listed(metadata, "tasks", where)
    names = [entry.get("name") if isinstance(entry, dict) else None for _, entry in tasks]
    if task is None or (task == 0 and not tasks):
        return where, {}
    if task in names:
        return tasks[names.index(task)]
    if isinstance(task, int) and 0 <= task < len(tasks):
        return tasks[task]
    raise ValueError(f"{where}: task {task!r} is not there, expected 0 to {len(tasks) - 1} or one of "
                     f"{[name for name in names if name is not None]}")


def read_items(folder, task, where):
    """Read the items of the sets of a task."""
    items = []
    for name, split in SETS.items():
        for place, entry in listed(task, name, where):
            need(entry, "data", list, place)
            data = {}
            for at, column in listed(entry, "data", place):
                data[need(column, "name", str, at)] = read_array(folder, column, at)
            seeds = next((known for known in SEEDS if known in data), None)
            if seeds is None:
                raise ValueError(f"{place}: data has {sorted(data)}, expected seeds or seed_nodes")
            items.append(Item(split, place, entry.get("type"), data, seeds))
    return items


def are_links(items):
    """Whether seeds are pairs of vertices."""
    widths = set()
    for item in items:
        path, seeds = item.data[item.seeds]
        if seeds.ndim != 1 and (seeds.ndim != 2 or seeds.shape[1] != 2):
            raise ValueError(f"{path}: shape {seeds.shape}, expected (vertices,) or (links, 2)")
        widths.add(seeds.ndim)
    if len(widths) > 1:
        raise ValueError(f"{items[0].where}: some sets have vertices and some have links, expected "
                         "vertices or links alone")
    return widths == {2}


def labels_and_masks(items, kinds, numbers):
    """Return labels of all vertices, -1 or NaN where no set has one, and the vertices of each split.
    `kinds` has the types of vertices."""
    own, masks = [], {}
    for item in items:
        first, count = kinds.place(item.kind, item.where)
        path, seeds = item.data[item.seeds]
        seeds = take(seeds, np.int64, path, None)
        wrong = (seeds < 0) | (seeds >= count)
        if wrong.any():
            refuse(path, seeds, wrong, f"0 to {count - 1}")
        masks.setdefault(item.split, []).append(seeds + first)
        if "labels" in item.data:
            where, labels = item.data["labels"]
            check_shape(labels, where, len(seeds), *labels.shape[1:2])
            own.append((where, seeds + first, labels_of(labels, numbers)))
    labelled = sorted({str(item.kind) for item in items if "labels" in item.data})
    if len(labelled) > 1:
        raise ValueError(f"{items[0].where}: {labelled} have labels, expected one type")
    masks = {split: np.concatenate(parts) for split, parts in masks.items()}
    return join_labels(own, kinds.vertices), masks


def join_labels(own, n):
    """Return one array of the labels of all sets, which are (path, vertices, (labels, none))."""
    if not own:
        return None
    shape = own[0][2][0].shape[1:]
    whole = all(labels.dtype.kind == "i" for _, _, (labels, _) in own)
    joined = np.full((n, *shape), -1 if whole else np.nan, np.int64 if whole else np.float32)
    for path, vertices, (labels, _) in own:
        if labels.shape[1:] != shape:
            raise ValueError(f"{path}: shape {labels.shape}, expected {(len(labels), *shape)} as in "
                             f"{own[0][0]}")
        joined[vertices] = labels
    for path, vertices, (labels, _) in own:
        there = joined[vertices]
        wrong = (there != labels) & ~(np.isnan(there) & np.isnan(labels))
        if wrong.any():
            v = vertices[np.argwhere(wrong)[0][0]]
            raise ValueError(f"{path}: vertex {v} has another label elsewhere in the task, expected "
                             "one label")
    return joined


def keys_of(edges, n):
    """Return a sorted number of each pair (2, count) of vertices, in any direction, without loops."""
    least, most = np.minimum(*edges), np.maximum(*edges)
    return np.unique((least * n + most)[least != most])


def links_of(items, kinds, edges):
    """Return what Graph takes as links. `edges` (2, count) are those of the graph, each of which is a
    training link."""
    links, known = {}, keys_of(edges, kinds.vertices)
    training = []
    for item in items:
        first, most = kinds.ends(item.kind, item.where)
        path = item.data[item.seeds][0]
        pairs, others = pairs_of(item, most)
        pairs, others = pairs + first, others + first
        keys = keys_of(pairs.T, kinds.vertices)
        inside = np.isin(keys, known)
        if item.split == "train":
            training.append(keys)
            if not inside.all():
                raise ValueError(f"{path}: {(~inside).sum()} links are no edges of the graph, expected "
                                 "edges alone: Starling trains on the edges of the graph")
        elif inside.any():
            raise ValueError(f"{path}: {inside.sum()} links are edges of the graph, expected a graph "
                             "without the links of validation and test")
        else:
            before = links.get(item.split, (pairs[:0], others[:0]))
            links[item.split] = (np.append(before[0], pairs, 0), np.append(before[1], others, 0))
    if training and len(np.unique(np.concatenate(training))) < len(known):
        raise ValueError(f"{items[0].where}: has {len(np.unique(np.concatenate(training)))} links, and "
                         f"the graph {len(known)} edges, expected all edges: Starling trains on each")
    return links


def pairs_of(item, most):
    """Return links (links, 2) of an item, and its negatives, those of a link together."""
    path, seeds = item.data[item.seeds]
    seeds = take(seeds, np.int64, path, None, 2)
    check_ends(path, seeds.T, most, "link")
    if "labels" in item.data:
        return split_pairs(item, seeds)
    found = {}
    for name, end in (("negative_srcs", 0), ("negative_dsts", 1)):
        if name in item.data:
            at, ids = item.data[name]
            ids = take(ids[:, None] if ids.ndim == 1 else ids, np.int64, at, len(seeds), None)
            wrong = (ids < 0) | (ids >= most[end])
            if wrong.any():
                refuse(at, ids, wrong, f"0 to {most[end] - 1}")
            found[end] = ids
    if not found and item.split != "train":
        raise ValueError(f"{item.where}: has {sorted(item.data)}, expected negative_dsts, or labels and "
                         "indexes, for the negatives")
    if not found:
        return seeds, seeds[:0]
    if len(found) == 2 and found[0].shape != found[1].shape:
        raise ValueError(f"{item.data['negative_dsts'][0]}: shape {found[1].shape}, expected "
                         f"{found[0].shape} as of negative_srcs")
    each = next(iter(found.values())).shape[1]
    ends = [found[end].ravel() if end in found else seeds[:, end].repeat(each) for end in (0, 1)]
    return seeds, np.stack(ends, 1)


def split_pairs(item, seeds):
    """Split pairs by their labels, 1 for a link; `indexes` says which link a negative belongs to."""
    if "indexes" not in item.data:
        raise ValueError(f"{item.where}: has labels of edges, expected labels of vertices, or links "
                         "with indexes")
    (at, labels), (path, indexes) = item.data["labels"], item.data["indexes"]
    labels, indexes = (take(array, np.int64, name, len(seeds))
                       for name, array in ((at, labels), (path, indexes)))
    wrong = (labels != 0) & (labels != 1)
    if wrong.any():
        refuse(at, labels, wrong, "0 or 1")
    order = np.argsort(indexes, kind="stable")
    seeds, is_link, indexes = seeds[order], labels[order] == 1, indexes[order]
    queries, counts = np.unique(indexes[~is_link], return_counts=True)
    if item.split != "train" and (not np.array_equal(indexes[is_link], queries) or
                                  len(set(counts.tolist())) > 1):
        raise ValueError(f"{path}: expected one link and equally many negatives of each index")
    return seeds[is_link], seeds[~is_link]
