"""Models out of state dicts of PyTorch Geometric and DGL."""
import os

import numpy as np

from ._graph import Graph
from ._model import train

# Tensors of a layer, by the names that they have there, and what they are here: a matrix that is
# transposed on the way, a matrix as it is, or a vector. A layer is recognised by its `mark`, which
# no other has.
TURNED, AS_IS, VECTOR = "turned", "as it is", "vector"


class Kind:
    def __init__(self, model, mark, tensors, options=None):
        self.model, self.mark, self.tensors, self.options = model, mark, tensors, options or {}


KINDS = [
    # PyTorch Geometric: GCNConv, SAGEConv, GATConv
    Kind("gat", "att_src", {"lin.weight": ("lin.weight", TURNED),
                            "lin_src.weight": ("lin.weight", TURNED),
                            "res.weight": ("res.weight", TURNED),
                            "att_src": ("att_src", VECTOR), "att_dst": ("att_dst", VECTOR),
                            "bias": ("bias", VECTOR)}),
    Kind("sage", "lin_l.weight", {"lin_l.weight": ("lin_l.weight", TURNED),
                                  "lin_r.weight": ("lin_r.weight", TURNED),
                                  "lin_l.bias": ("lin_l.bias", VECTOR)}),
    Kind("gcn", "lin.weight", {"lin.weight": ("weight", TURNED), "bias": ("bias", VECTOR)}),
    # DGL: GATConv, SAGEConv, GraphConv
    Kind("gat", "attn_l", {"fc.weight": ("lin.weight", TURNED),
                           "res_fc.weight": ("res.weight", TURNED),
                           "attn_l": ("att_src", VECTOR), "attn_r": ("att_dst", VECTOR),
                           "bias": ("bias", VECTOR), "res_fc.bias": ("bias", VECTOR)}),
    Kind("sage", "fc_self.weight", {"fc_neigh.weight": ("lin_l.weight", TURNED),
                                    "fc_self.weight": ("lin_r.weight", TURNED),
                                    "fc_self.bias": ("lin_l.bias", VECTOR),
                                    "bias": ("lin_l.bias", VECTOR)}),
    Kind("sage", "fc_neigh.weight", {"fc_neigh.weight": ("weight", TURNED),
                                     "bias": ("bias", VECTOR)}, {"aggregator": "gcn"}),
    Kind("gcn", "weight", {"weight": ("weight", AS_IS), "bias": ("bias", VECTOR)}),
]
# GINConv of both, whose network is two linear layers with relu between them.
GIN = [("nn.0.weight", "nn.2.weight", "nn.0.bias", "nn.2.bias"),
       ("nn.lins.0.weight", "nn.lins.1.weight", "nn.lins.0.bias", "nn.lins.1.bias"),
       ("apply_func.0.weight", "apply_func.2.weight", "apply_func.0.bias", "apply_func.2.bias")]


def read_state(path):
    """The tensors of a .pt or .safetensors file."""
    if os.fspath(path).endswith(".safetensors"):
        from safetensors.numpy import load_file
        return load_file(path)
    import torch
    state = torch.load(path, map_location="cpu", weights_only=True)
    return state.get("state_dict", state) if isinstance(state, dict) else state


def array_of(name, tensor):
    array = np.asarray(tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else tensor)
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError(f"state: {name} has {array.dtype} (expected finite numbers)")
    return array.astype(np.float32)


def split_layers(state):
    """A list of layers, each a dict of tensors by their names within the layer, in the order of
    the state."""
    known = {name for kind in KINDS for name in kind.tensors} | {n for names in GIN for n in names}
    known.add("eps")
    layers = {}
    for name, tensor in state.items():
        suffix = max((k for k in known if name == k or name.endswith("." + k)), key=len,
                     default=None)
        if suffix is None:
            raise ValueError(f"state: {name} is of no layer that is known (expected GCNConv, "
                             "SAGEConv, GATConv, GINConv of PyTorch Geometric, or GraphConv, "
                             "SAGEConv, GATConv, GINConv of DGL)")
        layers.setdefault(name[:len(name) - len(suffix)], {})[suffix] = array_of(name, tensor)
    if not layers:
        raise ValueError("state: no tensors")
    return layers


def convert(prefix, tensors):
    """The kind of a layer, and its tensors as Starling has them: a list of dicts, a layer each."""
    for names in GIN:
        if names[0] in tensors:
            eps = tensors.get("eps", np.zeros(1))
            if np.abs(eps).max() > 0:
                raise ValueError(f"state: {prefix}eps is {float(eps.ravel()[0]):g} (expected 0)")
            check_names(prefix, tensors, set(names) | {"eps"})
            one, two, bias, other = (tensors.get(n) for n in names)
            if two is None:
                raise ValueError(f"state: {prefix}{names[1]} is missing")
            return None, [part(one, bias), part(two, other)]
    for kind in KINDS:
        if kind.mark in tensors:
            break
    else:
        raise ValueError(f"state: {prefix} has {sorted(tensors)}, which is no layer that is known")
    if kind.model == "sage" and kind.mark == "lin_l.weight" and "lin_r.weight" not in tensors:
        raise ValueError(f"state: {prefix}lin_r.weight is missing (expected root_weight=True)")
    check_names(prefix, tensors, set(kind.tensors))
    layer = {}
    for name, array in tensors.items():
        ours, how = kind.tensors[name]
        array = {TURNED: lambda a: a.T, AS_IS: lambda a: a,
                 VECTOR: lambda a: a.reshape(1, -1)}[how](array)
        layer[ours] = layer[ours] + array if ours in layer else array
    return kind, [layer]


def part(weight, bias):
    return {"weight": weight.T, **({} if bias is None else {"bias": bias.reshape(1, -1)})}


def check_names(prefix, tensors, known):
    for name in tensors:
        if name not in known:
            raise ValueError(f"state: {prefix}{name} has no counterpart (expected {sorted(known)})")


def heads_of(tensors):
    attention = tensors.get("att_src", tensors.get("attn_l"))
    return attention.shape[1], attention.shape[2]


def equal(what, values):
    if len(set(values)) > 1:
        raise ValueError(f"state: {what} {values} differ (expected one number)")
    return values[0]


def shape_options(kind, layers, converted):
    """The options that tensors tell of."""
    options = {"model": kind.model if kind else "gin", **(kind.options if kind else {})}
    options["layers"] = len(layers)
    if options["model"] == "gat":
        heads = [heads_of(t) for t in layers]
        options["out_heads"] = heads[-1][0]
        hidden = heads[:-1] or heads[-1:]
        options["heads"] = equal("heads", [h for h, _ in hidden])
        options["hidden"] = equal("columns of heads", [f for _, f in hidden])
        if any("res.weight" in layer for layer in converted):
            options["residual"] = "linear"
    else:
        widths = [next(v for k, v in layer.items() if k.endswith("weight")).shape[1]
                  for layer in converted]
        options["hidden"] = equal("widths of hidden layers", widths[:-1] or widths)
    options["bias"] = any("bias" in name for layer in converted for name in layer)
    return options


def check_last_heads(kind, layers, converted):
    """The last layer has the mean of its heads, whose biases add up to one."""
    heads, width = heads_of(layers[-1])
    bias = converted[-1].get("bias")
    if bias is None or bias.size == width:
        return
    if kind.mark == "att_src":
        raise ValueError(f"state: the last layer has {heads} heads side by side (expected one "
                         "head, or concat=False)")
    converted[-1]["bias"] = bias.reshape(heads, width).mean(0, keepdims=True)


def make_model(options, inputs, classes):
    """A model of these shapes, trained a little on a graph of vertices without edges."""
    n = max(classes, 2)
    graph = Graph(np.zeros(n + 1, np.int64), np.zeros(0, np.int32),
                  features=np.ones((n, inputs), np.float32),
                  labels=np.arange(n, dtype=np.int32) % classes,
                  masks={"train": np.ones(n, bool)})
    return train(graph, epochs=1, patience=0, **options)


def from_state_dict(state, **options):
    """Make a Model of the weights of a model of PyTorch Geometric or DGL, to predict with.

    state: a state dict of layers one after the other, or the path of a .pt or .safetensors file.
    Layers: GCNConv, SAGEConv, GATConv, GINConv; DGL's GraphConv, SAGEConv, GATConv, GINConv. What
    tensors do not tell is an option of `starling train`: aggregator ("mean"), activation, norm.
    Features are taken as they are unless normalize_features says otherwise.
    """
    if not hasattr(state, "items"):
        state = read_state(state)
    layers = split_layers(state)
    parts = [convert(prefix, tensors) for prefix, tensors in layers.items()]
    kinds = {id(kind): kind for kind, _ in parts}
    if len(kinds) > 1:
        raise ValueError("state: layers of several kinds (expected one)")
    kind = parts[0][0]
    converted = [layer for _, made in parts for layer in made]
    tensors = list(layers.values())
    found = shape_options(kind, tensors, converted)
    if found["model"] == "gat":
        check_last_heads(kind, tensors, converted)
    first, last = converted[0], converted[-1]
    inputs = next(v for k, v in first.items() if k.endswith("weight")).shape[0]
    classes = (heads_of(tensors[-1])[1] if found["model"] == "gat" else
               next(v for k, v in last.items() if k.endswith("weight")).shape[1])
    model = make_model({"normalize_features": "none", **found, **options}, inputs, classes)
    fill(model.weights, converted)
    return model


def fill(weights, converted):
    wanted = {f"layer.{l}.{name}": array for l, layer in enumerate(converted)
              for name, array in layer.items()}
    for name, array in weights.items():
        given = wanted.pop(name, None)
        if given is None and not name.endswith("bias"):
            raise ValueError(f"state: nothing for {name} {array.shape}")
        if given is not None and given.shape != array.shape:
            raise ValueError(f"state: {given.shape} for {name} (expected {array.shape})")
        array[...] = 0 if given is None else given
    if wanted:
        raise ValueError(f"state: no tensor here for {sorted(wanted)}")
