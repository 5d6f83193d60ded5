"""The C library by ctypes: its functions, and errors as exceptions."""
import atexit
import ctypes
import ctypes.util
import os
import sys

POINTER, INT, INT64, TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_char_p
OUT = ctypes.POINTER(POINTER)
OUT64 = ctypes.POINTER(INT64)


class Error(Exception):
    """What the library refused, as a sentence. `code`: of enum starling_code."""

    def __init__(self, code, sentence):
        super().__init__(sentence or "another rank has the reason")
        self.code = code


class Sizes(ctypes.Structure):
    _fields_ = [(name, INT64) for name in ("vertices", "entries", "features", "classes")]


SCORES = ["loss", "train_accuracy", "val_accuracy", "test_accuracy", "train_score", "val_score",
          "test_score"]


class EpochNumbers(ctypes.Structure):
    _fields_ = ([("epoch", INT64), ("epochs", INT64)] +
                [(name, ctypes.c_double) for name in SCORES + ["seconds"]])


class ResultNumbers(ctypes.Structure):
    _fields_ = ([("epochs", INT64), ("best_epoch", INT64)] +
                [(name, ctypes.c_double) for name in SCORES] + [("metric", TEXT)] +
                [(name, ctypes.c_double) for name in ("epoch_seconds", "seconds")] +
                [("stopped", INT), ("early", INT), ("kept_epoch", INT64)])


class LossRows(ctypes.Structure):
    _fields_ = [("rows", INT64), ("columns", INT64), ("vertex", POINTER), ("logits", POINTER),
                ("classes", POINTER), ("labels", POINTER), ("loss", POINTER),
                ("gradient", POINTER)]


class Heads(ctypes.Structure):
    _fields_ = [("heads", ctypes.c_int32), ("width", INT64), ("slope", ctypes.c_float),
                ("training", INT), ("dropout", ctypes.c_double), ("seed", ctypes.c_uint64)]


LOSS = ctypes.CFUNCTYPE(None, POINTER, ctypes.POINTER(LossRows))
CALLBACK = ctypes.CFUNCTYPE(INT, POINTER, ctypes.POINTER(EpochNumbers))

# Each function of starling.h: its result, then its arguments. `INT` is a code where it is a result.
FUNCTIONS = {
    "version": (TEXT,),
    "error": (TEXT,),
    "start": (INT,),
    "rank": (None,),
    "ranks": (None,),
    "finish": (None,),
    "graph_open": (INT, TEXT, OUT),
    "graph_create": (INT, INT64, INT64, POINTER, POINTER, OUT),
    "graph_count_duplicates": (INT, POINTER),
    "graph_save": (INT, POINTER, TEXT),
    "graph_set_weights": (INT, POINTER, POINTER),
    "graph_set_edge_features": (INT, POINTER, INT64, POINTER),
    "graph_set_edge_types": (INT, POINTER, POINTER),
    "graph_set_links": (INT, POINTER, INT, INT64, POINTER, INT64, POINTER),
    "graph_set_features": (INT, POINTER, INT64, POINTER),
    "graph_set_sparse_features": (INT, POINTER, INT64, INT64, POINTER, POINTER, POINTER),
    "graph_set_classes": (INT, POINTER, INT64, POINTER),
    "graph_set_labels": (INT, POINTER, INT64, POINTER),
    "graph_set_numbers": (INT, POINTER, INT64, POINTER),
    "graph_set_split": (INT, POINTER, INT, INT64, POINTER),
    "graph_set_mask": (INT, POINTER, INT, POINTER),
    "graph_sizes": (INT, POINTER, ctypes.POINTER(Sizes)),
    "graph_free": (None, POINTER),
    "options_create": (INT, OUT),
    "options_set": (INT, POINTER, TEXT, TEXT),
    "options_free": (None, POINTER),
    "loss_register": (INT, TEXT, INT, LOSS, POINTER),
    "train": (INT, POINTER, POINTER, CALLBACK, POINTER, OUT),
    "stop": (None, INT),
    "stopped": (None,),
    "model_load": (INT, TEXT, OUT),
    "model_save": (INT, POINTER, TEXT),
    "model_free": (None, POINTER),
    "model_result": (ctypes.POINTER(ResultNumbers), POINTER),
    "model_description": (TEXT, POINTER),
    "model_weights": (INT64, POINTER),
    "model_weight": (POINTER, POINTER, INT64, ctypes.POINTER(TEXT), OUT64, OUT64),
    "predict": (INT, POINTER, POINTER, POINTER, INT, OUT),
    "prediction_output": (POINTER, POINTER, INT, OUT64, OUT64),
    "prediction_classes": (POINTER, POINTER, OUT64, OUT64),
    "prediction_result": (ctypes.POINTER(ResultNumbers), POINTER),
    "prediction_free": (None, POINTER),
    "adjacency_create": (INT, INT64, INT64, INT64, POINTER, POINTER, POINTER, OUT),
    "adjacency_free": (None, POINTER),
    "adjacency_sum": (INT, POINTER, INT, INT64, POINTER, INT, POINTER),
    "adjacency_max": (INT, POINTER, INT, INT64, POINTER, INT, POINTER, POINTER),
    "adjacency_max_back": (INT, POINTER, INT64, POINTER, POINTER, INT, POINTER),
    "attention_forward": (INT, POINTER, ctypes.POINTER(Heads), POINTER, POINTER, POINTER, INT,
                          POINTER, OUT),
    "attention_back": (INT, POINTER, POINTER, INT, POINTER, POINTER, POINTER),
    "attention_free": (None, POINTER),
}


def check(code, _function=None, _arguments=None):
    if code < 0:
        raise Error(code, library.starling_error().decode())
    return code


# Where a wheel has the C library, the program and the examples (packaging/wheel/make-wheel.sh).
WHEEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_wheel")


def open_library():
    names = [os.environ.get("STARLING_LIBRARY"), "libstarling.so.0",
             ctypes.util.find_library("starling")]
    inside = os.path.join(WHEEL, "lib", "libstarling.so.0")
    if os.path.exists(inside):
        names.insert(1, inside)
        # Plugins of the system belong to the system's hwloc, and there is another one inside.
        os.environ.setdefault("HWLOC_PLUGINS_PATH", "/nonexistent")
    reasons = []
    for name in filter(None, names):
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError("libstarling is not installed where the loader looks (LD_LIBRARY_PATH), and "
                      "STARLING_LIBRARY does not name it: " + "; ".join(reasons))


library = open_library()
for _name, (_result, *_arguments) in FUNCTIONS.items():
    _function = getattr(library, "starling_" + _name)
    _function.restype = INT if _name in ("rank", "ranks", "stopped") else _result
    _function.argtypes = _arguments
    if _result is INT:
        _function.errcheck = check
atexit.register(library.starling_finish)


def example(name):
    """The path of a dataset that comes with Starling: "karate"."""
    here = os.path.dirname(WHEEL)
    folders = [os.path.join(WHEEL, "share", "starling", "examples"),
               os.path.join(here, "..", "..", "examples"),
               os.path.join(sys.prefix, "share", "starling", "examples"),
               "/usr/local/share/starling/examples", "/usr/share/starling/examples"]
    for folder in folders:
        path = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(os.path.join(path, "meta.json")):
            return path
    raise FileNotFoundError(f"no example {name!r} in {folders}")


def version():
    """The version of the C library."""
    return library.starling_version().decode()


def rank():
    """The number of this process among those of an MPI launcher."""
    check(library.starling_start())
    return library.starling_rank()


def ranks():
    """How many processes an MPI launcher started; 1 without one."""
    check(library.starling_start())
    return library.starling_ranks()


class Handle:
    """An object of the C library, freed with this one."""

    pointer = None

    def __init__(self, free):
        self.pointer = POINTER()
        self.free = free

    def __reduce__(self):
        raise TypeError("this object lies in the C library (expected save, and another one of the "
                        "file)")

    def out(self):
        return ctypes.byref(self.pointer)

    def __del__(self):
        if self.pointer:
            self.free(self.pointer)
