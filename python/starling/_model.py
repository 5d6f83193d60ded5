"""Training, models and predictions."""
import ctypes
import json
import os
import signal
import tempfile
import threading
from types import SimpleNamespace

import numpy as np

from ._arrays import take
from ._library import CALLBACK, INT, INT64, POINTER, TEXT, Handle, library
from ._loss import call, name_of, raised

LOGITS, PROBABILITIES, EMBEDDINGS = range(3)


class Epoch(SimpleNamespace):
    """What an epoch was: epoch, epochs, loss, train_accuracy, …, seconds. NaN: not measured."""


class Result(SimpleNamespace):
    """What a training or an evaluation was: epochs, best_epoch, kept_epoch, whose weights the
    model has, loss and test_accuracy, …, of these weights"""


def fields(kind, numbers):
    values = {name: getattr(numbers, name) for name, _ in numbers._fields_}
    if "metric" in values:
        values["metric"] = (values["metric"] or b"").decode()
        values["stopped"], values["early"] = bool(values["stopped"]), bool(values["early"])
    return kind(**values)


def text_of(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def make_options(options):
    handle = Handle(library.starling_options_free)
    library.starling_options_create(handle.out())
    for name, value in options.items():
        library.starling_options_set(handle.pointer, name.replace("_", "-").encode(),
                                     os.fsencode(text_of(value)))
    return handle


def array_of(pointer, kind, rows, columns, owner):
    """The library's memory as an array (rows, columns), which keeps `owner`."""
    if not pointer:
        return None
    memory = (kind * (rows * columns)).from_address(pointer)
    memory.owner = owner
    return np.frombuffer(memory, kind).reshape(rows, columns)


class Weights(dict):
    """Arrays by name. w["layer.0.weight"] = array copies into the model."""

    def __setitem__(self, name, array):
        self[name][...] = take(array, np.float32, name, *self[name].shape)

    def __missing__(self, name):
        raise KeyError(f"{name!r} is not there (expected one of {list(self)})")


class Prediction:
    """Of all vertices, on rank 0; None on other ranks. Arrays lie in the library's memory."""

    def __init__(self, handle):
        self._handle = handle
        #: accuracies and scores on the graph's splits
        self.result = fields(Result, library.starling_prediction_result(handle.pointer)[0])

    def _array(self, kind, function, *which):
        rows, columns = INT64(), INT64()
        pointer = function(self._handle.pointer, *which, ctypes.byref(rows), ctypes.byref(columns))
        return array_of(pointer, kind, rows.value, columns.value, self._handle)

    @property
    def classes(self):
        """(vertices) classes; of several labels (vertices, columns) of 0 and 1."""
        array = self._array(ctypes.c_int32, library.starling_prediction_classes)
        return array[:, 0] if array is not None and array.shape[1] == 1 else array

    def _output(self, which):
        return self._array(ctypes.c_float, library.starling_prediction_output, which)

    logits = property(lambda self: self._output(LOGITS), doc="(vertices, columns)")
    probabilities = property(lambda self: self._output(PROBABILITIES), doc="(vertices, columns)")
    embeddings = property(lambda self: self._output(EMBEDDINGS), doc="(vertices, hidden)")


class Model:
    """Weights, and the options that they belong to."""

    def __init__(self, handle, loss=None, result=None):
        self._handle = handle
        self._loss = loss  # keeps the function of a loss
        self._result = result  # of a copy, which a checkpoint does not have

    @property
    def weights(self):
        """A dict of the weights by name: arrays (rows, columns) that may be changed in place."""
        weights = Weights()
        name, rows, columns = TEXT(), INT64(), INT64()
        for index in range(library.starling_model_weights(self._handle.pointer)):
            pointer = library.starling_model_weight(self._handle.pointer, index, ctypes.byref(name),
                                                    ctypes.byref(rows), ctypes.byref(columns))
            array = array_of(pointer, ctypes.c_float, rows.value, columns.value, self._handle)
            dict.__setitem__(weights, name.value.decode(), array)
        return weights

    @property
    def result(self):
        if self._result is not None:
            return Result(**vars(self._result))
        return fields(Result, library.starling_model_result(self._handle.pointer)[0])

    @property
    def description(self):
        """A dict: "configuration" has the options, "dataset" the sizes."""
        return json.loads(library.starling_model_description(self._handle.pointer))

    def predict(self, graph, embeddings=False, **options):
        """Apply the model to all vertices of a graph."""
        prediction = Handle(library.starling_prediction_free)
        given = make_options(options)
        call(library.starling_predict, self._handle.pointer, graph._handle.pointer, given.pointer,
             embeddings, prediction.out())
        return Prediction(prediction)

    def save(self, path):
        """Write a checkpoint, which `starling predict` and `--resume` read, too."""
        library.starling_model_save(self._handle.pointer, os.fsencode(path))

    def __reduce__(self):
        return unpickle, (checkpoint_of(self), self.result)

    def __deepcopy__(self, memo):
        copy = unpickle(checkpoint_of(self), self.result)
        copy._loss = self._loss
        return copy


def load(path):
    """Read a checkpoint."""
    model = Handle(library.starling_model_free)
    library.starling_model_load(os.fsencode(path), model.out())
    return Model(model)


def checkpoint_of(model):
    """The bytes of a checkpoint."""
    if library.starling_rank() > 0:
        raise ValueError("model: only rank 0 copies it (expected starling.rank() == 0)")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        model.save(path)
        with open(path, "rb") as file:
            return file.read()


def unpickle(checkpoint, result):
    """The model of such bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        with open(path, "wb") as file:
            file.write(checkpoint)
        model = load(path)
    model._result = result
    return model


class CtrlC:
    """While the library trains, Ctrl-C asks it to stop: Python's own handler runs only when the
    main thread is back in Python. A handler of the caller's own stays in force."""

    _set = ctypes.pythonapi.PyOS_setsig
    _set.restype, _set.argtypes = POINTER, (INT, POINTER)
    _stop = ctypes.cast(library.starling_stop, POINTER)

    def __init__(self):
        self._used = (threading.current_thread() is threading.main_thread() and
                      signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        self._handler, self._pressed = None, False
        library.starling_stopped()  # forgets what came before

    def pressed(self):
        self._pressed = bool(library.starling_stopped()) or self._pressed
        return self._pressed

    def to_library(self):
        if self._used:
            self._handler = CtrlC._set(signal.SIGINT, CtrlC._stop)

    def to_python(self):
        if self._used:
            CtrlC._set(signal.SIGINT, self._handler)


def train(graph, model="gcn", callback=None, **options):
    """Train a model. Options are those of `starling train`, with _ for each -: epochs=100,
    weight_decay=5e-4, bias=False. `callback` is told of each Epoch on rank 0; training stops when
    it returns something true. `loss` may be a function (register_loss). What these raise is raised
    here. Ctrl-C stops after the epoch that is on its way: KeyboardInterrupt, whose `model` is what
    was trained."""
    trained = Handle(library.starling_model_free)
    loss = options.get("loss")
    if callable(loss):
        options["loss"] = name_of(loss, graph._labels)
    given = make_options({"model": model, **options})
    ctrl_c = CtrlC()

    def tell(_context, numbers):
        if raised or ctrl_c.pressed():  # an epoch that was on its way
            return 1
        try:
            ctrl_c.to_python()
            try:
                return bool(callback(fields(Epoch, numbers[0])))
            finally:
                ctrl_c.to_library()
        except BaseException as error:  # pylint: disable=broad-except
            raised.append(error)
            return 1

    tell_library = CALLBACK(tell) if callback else CALLBACK()
    try:
        ctrl_c.to_library()
        try:
            call(library.starling_train, graph._handle.pointer, given.pointer, tell_library, None,
                 trained.out())
        finally:
            ctrl_c.to_python()
        if ctrl_c.pressed():
            raise KeyboardInterrupt
    except KeyboardInterrupt as interrupt:
        interrupt.model = Model(trained, loss) if trained.pointer else None
        raise
    return Model(trained, loss)
