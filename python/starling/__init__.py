"""Train graph neural networks on whole graphs: the functions of starling.h, with NumPy arrays.

    graph = starling.from_pyg(data)
    model = starling.train(graph, model="gcn", epochs=200)
    classes = model.predict(graph).classes

docs/PYTHON.md has the shapes. Everything here is a call of the C library, which is installed with
Starling; STARLING_LIBRARY names another one.
"""
from ._doors import from_dgl, from_networkx, from_ogb, from_pyg, from_scipy
from ._graph import Graph
from ._graphbolt import from_graphbolt
from ._library import Error, example, rank, ranks, version
from ._loss import register_loss
from ._model import Epoch, Model, Prediction, Result, load, train
from ._states import from_state_dict

__all__ = ["Epoch", "Error", "Graph", "Model", "Prediction", "Result", "example",
           "from_dgl", "from_graphbolt", "from_networkx", "from_ogb", "from_pyg", "from_scipy",
           "from_state_dict", "load", "rank", "ranks", "register_loss", "train", "version"]
