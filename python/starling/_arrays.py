"""Arrays for the C library: checked, and borrowed where type and order fit."""
import numpy as np


def refuse(name, given, wrong, expected):
    """Name the first wrong item."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f"item {at[0]}" if len(at) == 1 else f"row {at[0]}, column {', '.join(map(str, at[1:]))}"
    raise ValueError(f"{name}: {place} is {given[at]}, expected {expected}")


def check_values(name, given, cast):
    """Refuse numbers that the type of `cast` does not hold. Fractions of float32 are rounded."""
    if cast.dtype.kind == "f":
        with np.errstate(over="ignore"):
            wrong = np.isfinite(given) & ~np.isfinite(cast)
        expected = "a number that float32 holds"
    else:
        limits = np.iinfo(cast.dtype)
        wrong = given != cast
        if given.dtype.kind == "u":  # which NumPy compares with int64 as floats
            wrong = given > np.uint64(limits.max)
        expected = f"an integer, {limits.min} to {limits.max}"
    if np.any(wrong):
        refuse(name, given, wrong, expected)


def host(tensor, name):
    """A tensor of PyTorch as an array on the same memory."""
    if not hasattr(tensor, "detach"):
        return None if tensor is None else np.asarray(tensor)
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"{name}: a sparse tensor, expected a dense one; from_scipy and Graph take "
                        "sparse matrices of SciPy")
    return tensor.detach().cpu().numpy()


def check_shape(array, name, *shape):
    """None: any number of rows or columns."""
    if len(array.shape) != len(shape) or any(s not in (None, own)
                                             for s, own in zip(shape, array.shape)):
        wanted = ", ".join("any" if s is None else str(s) for s in shape)
        raise ValueError(f"{name}: shape {tuple(array.shape)}, expected "
                         f"({wanted}{',' if len(shape) == 1 else ''})")


def take(array, kind, name, *shape):
    """The array itself where type and order fit, else a copy that has them."""
    given = np.asarray(array)
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{name}: items are {given.dtype}, expected numbers")
    check_shape(given, name, *shape)
    with np.errstate(invalid="ignore", over="ignore"):
        cast = np.ascontiguousarray(given, kind)
    if given.size and cast.dtype != given.dtype and given.dtype.kind != "b":
        check_values(name, given, cast)
    return cast


def take_classes(labels, name, n):
    """Classes as int32; floats without fractions are classes, too, and NaN is none of them."""
    if labels.dtype.kind == "f":
        wrong = np.isfinite(labels) & (labels != np.floor(labels))
        if wrong.any():
            refuse(name, labels, wrong, "a class; numbers to predict need numbers=True")
        values = len(np.unique(labels[np.isfinite(labels) & (labels != -1)]))
        if values > 1000 or (values > 100 and np.isfinite(labels).sum() < 50 * values):
            raise ValueError(f"{name}: {values} different floats, expected classes as integers; "
                             "numbers to predict need numbers=True")
        labels = np.where(np.isnan(labels), labels.dtype.type(-1), labels)
    return take(labels, np.int32, name, n)


def take_several(labels, name, n):
    """Several labels a vertex, 0, 1 or NaN, as float32."""
    given, labels = labels, take(labels, np.float32, name, n, None)
    wrong = (labels != 0) & (labels != 1) & ~np.isnan(labels)
    if wrong.any():
        refuse(name, given, wrong, "0 or 1; numbers to predict need numbers=True")
    return labels


def mask_of(array, name):
    """A mask that may have 0 and 1 for False and True; of several in columns the first."""
    array = np.asarray(array)
    array = array[:, 0] if array.ndim == 2 else array
    if array.dtype != bool:
        wrong = (array != 0) & (array != 1)
        if wrong.any():
            refuse(name, array, wrong, "False or True")
        array = array.astype(bool)
    return array


def check_ends(path, edges, most, what="edge"):
    """Refuse edges (2, count) whose sources and targets are not below most[0] and most[1]."""
    below = np.asarray(most)[:, None]
    wrong = ((edges < 0) | (edges >= below)).any(0)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(f"{path}: {what} {k} is {edges[0, k]} -> {edges[1, k]}, expected "
                         f"0 to {most[0] - 1} -> 0 to {most[1] - 1}")


def csr_of_edges(n, source, target, weights=None, features=None, types=None):
    """CSR in which row v has the sources of the edges that end at v, each as often as it is given.
    Edges with features are there once, and edges with types once of each type: features and weights
    of duplicates are summed."""
    source, target = (take(end, np.int64, "edges", None) for end in (source, target))
    check_shape(target, "edges", len(source))
    wrong = (source < 0) | (source >= n) | (target < 0) | (target >= n)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(f"edges: edge {k} is {source[k]} -> {target[k]}, expected 0 to {n - 1}")
    if weights is not None:
        weights = take(weights, np.float32, "weights", len(source))
    if types is not None:
        types = take(types, np.int32, "edge_types", len(source))
    order = np.lexsort((source, target) if types is None else (types, source, target))
    source, target = source[order], target[order]
    weights = None if weights is None else weights[order]
    types = None if types is None else types[order]
    if features is not None:
        features = take(features, np.float32, "edge_features", len(order), None)[order]
    if features is not None or types is not None:
        first = np.ones(len(order), bool)
        first[1:] = (np.diff(source) != 0) | (np.diff(target) != 0)
        if types is not None:
            first[1:] |= np.diff(types) != 0
        if not first.all():
            at = np.flatnonzero(first)
            source, target = source[at], target[at]
            features = None if features is None else np.add.reduceat(features, at)
            weights = None if weights is None else np.add.reduceat(weights, at)
            types = None if types is None else types[at]
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=n), out=indptr[1:])
    return indptr, source.astype(np.int32), weights, features, types
