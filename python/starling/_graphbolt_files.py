"""The files of a dataset folder of DGL's GraphBolt: metadata.yaml, arrays and lists of edges."""
import gzip
import os
import re
import warnings

import numpy as np

from ._arrays import check_shape, host, take

KINDS = {str: "text", int: "a whole number", list: "a list", dict: "a mapping"}


def need(entry, key, kind, where):
    """Return entry[key], which is of this kind. `where` names file and entry in the sentence."""
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: is {entry!r}, expected a mapping with {key}")
    value = entry.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{where}: {key} is {value!r}, expected {KINDS[kind]}")
    return value


def listed(entry, key, where):
    """Return (where, item) for each item of a list, which may be absent."""
    absent = isinstance(entry, dict) and entry.get(key) is None
    items = [] if absent else need(entry, key, list, where)
    return [(f"{where}: {key}, item {i}", item) for i, item in enumerate(items)]


def read_metadata(folder):
    """Return the path of metadata.yaml and its mapping, which has a graph."""
    path = os.path.join(folder, "metadata.yaml")
    done = os.path.join(folder, "preprocessed", "metadata.yaml")
    if not os.path.isfile(path) and not os.path.isfile(done):
        raise FileNotFoundError(f"{path}: is not there, expected the description of a dataset of "
                                "GraphBolt")
    metadata = load_yaml(path) if os.path.isfile(path) else {"graph_topology": None}
    if not isinstance(metadata, dict):
        raise ValueError(f"{path}: is {type(metadata).__name__}, expected a mapping with graph")
    if "graph_topology" in metadata and "graph" not in metadata:
        raise ValueError(f"{folder}: has only what DGL preprocessed, expected a metadata.yaml with "
                         "graph, and the files of edges that it names")
    return path, metadata


def load_yaml(path):
    """Read a YAML file."""
    try:
        import yaml
    except ImportError:
        raise ImportError(f"{path}: PyYAML is not installed, expected it for GraphBolt's folders "
                          "(pip install PyYAML)") from None
    with open(path, "rb") as file:
        try:
            return yaml.safe_load(file)
        except (yaml.YAMLError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            line = f" from line {mark.line + 1} on" if mark else ""
            raise ValueError(f"{path}: is no YAML{line}, expected what GraphBolt describes") from None


def path_of(folder, entry, where):
    """Return the path that an entry names. Paths begin in the folder."""
    path = os.path.join(folder, need(entry, "path", str, where))
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path}: is not there, expected the file of {where}")
    return path


def read_array(folder, entry, where):
    """Return path and array of an entry. A NumPy file stays on disk with in_memory: false."""
    path, form = path_of(folder, entry, where), entry.get("format")
    if form == "numpy":
        array = read_numpy(path, entry.get("in_memory") is not False)
    elif form == "torch":
        array = read_torch(path)
    else:
        raise ValueError(f"{where}: format is {form!r}, expected 'numpy' or 'torch'")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{path}: items are {array.dtype}, expected numbers")
    return path, array


def read_numpy(path, in_memory):
    """Read an .npy file without pickles."""
    try:
        array = np.load(path, None if in_memory else "r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise ValueError(f"{path}: {reason}, expected an array of numpy.save") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{path}: is an archive, expected an array of numpy.save")
    return array


def read_torch(path):
    """Read a tensor of torch.save, without code of the file's."""
    try:
        import torch
    except ImportError:
        raise ImportError(f"{path}: PyTorch is not installed, expected it for a file of torch.save "
                          "(or format: numpy)") from None
    try:
        tensor = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        if isinstance(error, MemoryError):
            raise
        reason = str(error).split("\n", maxsplit=1)[0][:100]
        raise ValueError(f"{path}: {reason}, expected a tensor of torch.save") from None
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{path}: is {type(tensor).__name__}, expected a tensor of torch.save")
    return host(tensor.float() if tensor.dtype == torch.bfloat16 else tensor, path)


def read_edges(folder, entry, where):
    """Return the path of an entry of edges, and an array (2, edges) of sources and targets."""
    path, form = path_of(folder, entry, where), need(entry, "format", str, where)
    if form == "csv":
        edges = read_pairs(path).T
    elif form == "numpy":
        edges = read_array(folder, entry, where)[1]
        check_shape(edges, path, 2, None)
    else:
        raise ValueError(f"{where}: format is {form!r}, expected 'csv' or 'numpy'")
    return path, take(edges, np.int64, path, 2, None)


def read_pairs(path):
    """Return an array (edges, 2) of a CSV file that has SOURCE,TARGET in each line."""
    if os.path.getsize(path) == 0:
        return np.empty((0, 2), np.int64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy warns of fractions and of files without lines
            pairs = np.loadtxt(path, np.int64, delimiter=",", comments=None, ndmin=2)
    except (ValueError, Warning, OSError, EOFError):
        pairs = np.empty((0, 0), np.int64)
    if pairs.shape[1] != 2:
        refuse_line(path)
    return pairs


def refuse_line(path):
    """Name the first line that is no pair of whole numbers."""
    fits = re.compile(r"\s*([+-]?\d{1,18}\s*,\s*[+-]?\d{1,18}\s*)?$")
    expected = "expected SOURCE,TARGET, two whole numbers, and no header"
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="latin-1") as file:
            for number, line in enumerate(file, 1):
                if not fits.match(line):
                    raise ValueError(f"{path}: line {number} is {line.strip()[:60]!r}, {expected}")
    except (OSError, EOFError):
        pass  # a broken .gz
    raise ValueError(f"{path}: is no text of edges, {expected}")
