"""Losses of one's own: functions on arrays, which the library's workers call."""
import ctypes
import inspect
import itertools
import re
import weakref

import numpy as np

from ._library import LOSS, Error, check, library

LABELS = {"classes": 0, "labels": 1, "numbers": 2}

kept = {}  # functions that the library has, by name
unnamed = {}  # those that were given without a name: (a weak reference, the kind of labels)
raised = []  # what functions have raised since the last call


def call(function, *arguments):
    """Call the library. What a Python function raised meanwhile is raised here."""
    raised.clear()
    try:
        function(*arguments)
    except Error:
        if not raised:
            raise
    if raised:
        raise raised[0]


def view(pointer, kind, *shape):
    """The library's memory as an array."""
    return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(kind)), shape)


def compute(function, rows):
    """Give a function some rows, and the library what it returns."""
    if function is None:
        raise LookupError("the model's loss is gone (expected register_loss with its name)")
    n, columns = rows.rows, rows.columns
    logits = view(rows.logits, ctypes.c_float, n, columns)
    if rows.classes:
        labels = view(rows.classes, ctypes.c_int32, n)
    else:
        labels = view(rows.labels, ctypes.c_float, n, columns)
    loss = view(rows.loss, ctypes.c_double, n)
    loss[:] = np.nan  # unless the function returns
    own, gradient = function(logits, labels, view(rows.vertex, ctypes.c_int64, n))
    for name, array, shape in (("loss", own, (n,)), ("gradient", gradient, (n, columns))):
        if np.shape(array) != shape:
            raise ValueError(f"{name}: shape {np.shape(array)}, expected {shape}")
    if rows.gradient:
        view(rows.gradient, ctypes.c_float, n, columns)[...] = gradient
    loss[:] = own


def register(name, function_of, labels):
    """Give the library a name; function_of() returns the function."""
    def run(_context, rows):
        try:
            compute(function_of(), rows[0])
        except BaseException as error:  # pylint: disable=broad-except
            raised.append(error)

    callback = LOSS(run)
    check(library.starling_loss_register(name.encode(), LABELS[labels], callback, None))
    kept[name] = callback
    unnamed.pop(name, None)


def register_loss(name, function, labels="classes"):
    """Name a loss: train(graph, loss=name), and predictions of such a model.

    function(logits, labels, vertices) returns the loss of each row, (rows), and its gradient by
    the logits, (rows, columns). logits: (rows, columns) float32. labels: (rows) int32 for
    "classes"; (rows, columns) float32, NaN for not known, for "labels" of 0 and 1 and "numbers".
    vertices: (rows) numbers. A row's loss depends on this row alone. What the function raises,
    the call that trains or predicts raises. The same name again replaces the function."""
    if labels not in LABELS:
        raise ValueError(f"labels: {labels!r} (expected one of {list(LABELS)})")
    register(name, lambda: function, labels)


def reference(function):
    """Calls that return the function, as long as somebody else has it, or the object of a
    method."""
    try:
        of = weakref.WeakMethod if inspect.ismethod(function) else weakref.ref
        return of(function)
    except TypeError:
        return lambda: function


def name_of(function, labels):
    """The name of a loss that `train` was given as a function: own-NAME, or own-NAME-2 … where
    another function has it. A name is free again when nobody has its function any more."""
    own = re.sub("[^a-z0-9]+", "-", getattr(function, "__name__", "").lower()).strip("-")[:24]
    for number in itertools.count(1):
        name = "-".join(filter(None, ("own", own, str(number) if number > 1 else "")))
        holder, of = unnamed.get(name, (None, None))
        owner = holder and holder()
        if name not in kept or holder and owner is None:
            register(name, reference(function), labels)
            unnamed[name] = reference(function), labels
            return name
        if owner == function and of == labels:
            return name
