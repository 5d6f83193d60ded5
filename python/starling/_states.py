"""Models out of state dicts of PyTorch Geometric and DGL."""
import os
import re

import numpy as np

from ._graph import Graph
from ._model import train

# What becomes of a tensor: a matrix that is turned, a matrix as it is, a row.
TURNED, AS_IS, ROW = "turned", "as it is", "row"
MATRIX = (TURNED, AS_IS)


class Layer:
    """A class of layers: the model that has them, and of each tensor that a layer may have its name
    here and what becomes of it. `needed`: those that every layer has."""

    def __init__(self, model, needed, tensors, **options):
        self.model, self.needed, self.tensors, self.options = model, needed, tensors, options


def make_gin(one, two):
    tensors = {f"{one}.weight": (0, "weight", TURNED), f"{one}.bias": (0, "bias", ROW),
               f"{two}.weight": (1, "weight", TURNED), f"{two}.bias": (1, "bias", ROW)}
    return Layer("gin", [f"{one}.weight", f"{two}.weight"], {**tensors, "eps": (0, "eps", ROW)})


# By the class's name, the forms in which its tensors come.
LAYERS = {
    "GCNConv": [Layer("gcn", ["lin.weight"], {"lin.weight": (0, "weight", TURNED),
                                              "bias": (0, "bias", ROW)})],
    "SAGEConv": [Layer("sage", ["lin_l.weight", "lin_r.weight"],
                       {"lin_l.weight": (0, "lin_l.weight", TURNED),
                        "lin_r.weight": (0, "lin_r.weight", TURNED),
                        "lin_l.bias": (0, "lin_l.bias", ROW)})],
    "GATConv": [Layer("gat", [name, "att_src", "att_dst"],
                      {name: (0, "lin.weight", TURNED), "att_src": (0, "att_src", ROW),
                       "att_dst": (0, "att_dst", ROW), "res.weight": (0, "res.weight", TURNED),
                       "bias": (0, "bias", ROW)}) for name in ("lin.weight", "lin_src.weight")],
    "GINConv": [make_gin("nn.0", "nn.2"), make_gin("nn.lins.0", "nn.lins.1")],
    "dgl.GraphConv": [Layer("gcn", ["weight"], {"weight": (0, "weight", AS_IS),
                                                "bias": (0, "bias", ROW)})],
    "dgl.SAGEConv": [Layer("sage", ["fc_neigh.weight", "fc_self.weight"],
                           {"fc_neigh.weight": (0, "lin_l.weight", TURNED),
                            "fc_self.weight": (0, "lin_r.weight", TURNED),
                            "fc_self.bias": (0, "lin_l.bias", ROW),
                            "bias": (0, "lin_l.bias", ROW)}),
                     Layer("sage", ["fc_neigh.weight"],
                           {"fc_neigh.weight": (0, "weight", TURNED), "bias": (0, "bias", ROW)},
                           aggregator="gcn")],
    "dgl.GATConv": [Layer("gat", ["fc.weight", "attn_l", "attn_r"],
                          {"fc.weight": (0, "lin.weight", TURNED), "attn_l": (0, "att_src", ROW),
                           "attn_r": (0, "att_dst", ROW),
                           "res_fc.weight": (0, "res.weight", TURNED),
                           "res_fc.bias": (0, "bias", ROW), "bias": (0, "bias", ROW)})],
    "dgl.GINConv": [make_gin("apply_func.0", "apply_func.2")],
}
# What a layer must have besides its tensors, where a module is given.
ATTRIBUTES = {"GCNConv": {"improved": False, "normalize": True, "add_self_loops": True},
              "SAGEConv": {"normalize": False, "project": False},
              "GATConv": {"negative_slope": 0.2, "add_self_loops": True},
              "dgl.GraphConv": {"_norm": "both"}}
SCORES = ("att_src", "att_dst", "attn_l", "attn_r")


def read_state(path):
    """The tensors of a .pt or .safetensors file."""
    if os.fspath(path).endswith(".safetensors"):
        from safetensors.numpy import load_file
        return load_file(path)
    import torch
    state = torch.load(path, map_location="cpu", weights_only=True)
    inside = state.get("state_dict") if isinstance(state, dict) else None
    return inside if isinstance(inside, dict) else state


def array_of(name, tensor):
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().float().numpy() if tensor.is_floating_point() else None
    array = np.asarray(tensor)
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError(f"state: {name} is no tensor of finite numbers")
    return array.astype(np.float32)


def split_layers(state, forms):
    """Arrays by the prefix of their layer, then by their name within the layer."""
    known = {name for form in forms for name in form.tensors}
    layers = {}
    for name, tensor in state.items():
        suffix = max((k for k in known if name == k or name.endswith("." + k)), key=len,
                     default=None)
        if suffix is None:
            raise ValueError(f"state: {name} is of no such layer (expected {sorted(known)} at the "
                             "end of its name)")
        prefix = name[:len(name) - len(suffix)].rstrip(".")
        layers.setdefault(prefix, {})[suffix] = array_of(name, tensor)
    if not layers:
        raise ValueError("state: no tensors")
    return layers


def order_layers(prefixes, given):
    """The prefixes in the order of the layers: the caller's, or by the number in which they
    differ."""
    if given is not None:
        if sorted(given) != sorted(prefixes):
            raise ValueError(f"layers: {list(given)} (expected {sorted(prefixes)} in the order of "
                             "the layers)")
        return list(given)
    parts = [re.split(r"(\d+)", prefix) for prefix in prefixes]
    differ = [p for p in range(len(parts[0])) if len({tuple(q[p:p + 1]) for q in parts}) > 1]
    if len(prefixes) > 1 and (len({len(q) for q in parts}) > 1 or len(differ) != 1 or
                              differ[0] % 2 == 0):
        raise ValueError(f"state: layers are called {sorted(prefixes)} (expected names that differ in "
                         "one number, or layers=[...] in the order of the layers)")
    return [p for _, p in sorted(zip(parts, prefixes),
                                 key=lambda pair: [int(pair[0][d]) for d in differ])]


def find_form(name, forms, prefix, tensors):
    for form in forms:
        if set(form.needed) <= set(tensors) <= set(form.tensors):
            return form
    raise ValueError(f"state: {prefix} has {sorted(tensors)}, which is no {name} that is known "
                     f"(expected {' or '.join(str(form.needed) for form in forms)}, and a bias)")


def convert(form, prefix, tensors):
    """The layer as Starling has it: a list of dicts, one of each of Starling's layers."""
    made = [{} for _ in range(1 + max(place for place, _, _ in form.tensors.values()))]
    for name, array in tensors.items():
        place, ours, how = form.tensors[name]
        wanted = 2 if how in MATRIX else 3 if name in SCORES else 1
        if array.ndim != wanted:
            raise ValueError(f"state: {prefix}.{name} has {array.ndim} dimensions (expected {wanted})")
        if ours == "eps":
            if array.any():
                raise ValueError(f"state: {prefix}.eps is {array[0]:g} (expected 0)")
            continue
        array = array.T if how is TURNED else array if how is AS_IS else array.reshape(1, -1)
        made[place][ours] = made[place].get(ours, 0) + array
    return made


def equal(what, values):
    if len(set(values)) > 1:
        raise ValueError(f"state: {what} {values} differ (expected one number)")
    return values[0]


def widths_of(layer):
    """Rows and columns of a layer's first matrix."""
    return next(a.shape for n, a in layer.items() if n.endswith("weight"))


def attention_options(tensors, converted, name):
    """Heads and their columns. The last layer has the mean of its heads, whose biases add up."""
    scores = "attn_l" if name.startswith("dgl.") else "att_src"
    heads = [t[scores].shape[1:] for t in tensors]
    hidden = heads[:-1] or heads
    last, width = heads[-1]
    bias = converted[-1].get("bias")
    if last > 1 and not name.startswith("dgl.") and (bias is None or bias.size != width):
        raise ValueError(f"state: the last layer has {last} heads, maybe side by side (expected one "
                         "head, or concat=False and a bias)")
    if bias is not None and bias.size == last * width:
        converted[-1]["bias"] = bias.reshape(last, width).mean(0, keepdims=True)
    found = {"heads": equal("heads", [h for h, _ in hidden]), "out_heads": last,
             "hidden": equal("columns of heads", [f for _, f in hidden])}
    if any("res.weight" in layer for layer in converted):
        found["residual"] = "linear"
    return found, width


def make_model(options, inputs, classes):
    """A model of these shapes, trained a little on a graph of vertices without edges."""
    n = max(classes, 2)
    graph = Graph(np.zeros(n + 1, np.int64), np.zeros(0, np.int32),
                  features=np.ones((n, inputs), np.float32),
                  labels=np.arange(n, dtype=np.int32) % classes,
                  masks={"train": np.ones(n, bool)}, classes=classes)
    return train(graph, epochs=1, patience=0, **options)


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


def check_module(module, prefixes, name, aggregator):
    """Refuse layers of a module that are of another class, or do what tensors do not tell."""
    for prefix in prefixes:
        layer = module.get_submodule(prefix)
        called = name.removeprefix("dgl.")
        if called not in [t.__name__ for t in type(layer).__mro__]:
            raise ValueError(f"state: {prefix} is a {type(layer).__name__} (expected {name})")
        wanted = {**ATTRIBUTES.get(name, {}), **({"aggr": aggregator} if name == "SAGEConv" else {})}
        for attribute, value in wanted.items():
            there = getattr(layer, attribute)
            if there != value and not {there, value} <= {"add", "sum"}:
                raise ValueError(f"state: {prefix} has {attribute.strip('_')}={there!r} (expected "
                                 f"{value!r})")


def check_logits(model, graph, expected):
    expected = np.asarray(expected.detach().cpu() if hasattr(expected, "detach") else expected)
    logits = model.predict(graph).logits
    if logits.shape != expected.shape:
        raise ValueError(f"check: logits are {logits.shape} here, and {expected.shape} there")
    apart = np.abs(logits - expected).max()
    if not apart <= 1e-4 * max(1.0, np.abs(expected).max()):
        raise ValueError(f"check: logits differ by {apart:.3g}: an option is missing, or the state "
                         "does not tell all (docs/PYTHON.md)")


def from_state_dict(state, layer, layers=None, check=None, **options):
    """Make a Model of the weights of a model of PyTorch Geometric or DGL, to predict with.

    state: a module, its state dict, or the path of a .pt or .safetensors file. layer: the class of
    its layers: "GCNConv", "SAGEConv", "GATConv", "GINConv", or DGL's "dgl.GraphConv",
    "dgl.SAGEConv", "dgl.GATConv", "dgl.GINConv". layers: the names of the layers in their order,
    where they differ in more than a number. check: a pair of a Graph and the logits that the model
    has for it; other logits here are an error. What tensors do not tell is an option of
    `starling train`; activation is needed for attention.
    """
    if layer not in LAYERS:
        raise ValueError(f"layer: {layer!r} (expected one of {list(LAYERS)})")
    module = state if hasattr(state, "state_dict") else None
    if module is not None:
        state = module.state_dict()
    if not hasattr(state, "items"):
        state = read_state(state)
    forms = LAYERS[layer]
    split = split_layers(state, forms)
    order = order_layers(list(split), layers)
    if module is not None:
        check_module(module, order, layer, options.get("aggregator", "mean"))
    tensors = [split[prefix] for prefix in order]
    if layer == "dgl.GraphConv" and module is check is None and all(
            t["weight"].shape[:1] == t["weight"].shape[1:] for t in tensors):
        raise ValueError("state: square matrices may be those of linear layers (expected the module, "
                         "or check=(graph, logits))")
    found_forms = [find_form(layer, forms, p, t) for p, t in zip(order, tensors)]
    form = found_forms[0]
    if any(other is not form for other in found_forms):
        raise ValueError(f"state: not all layers have the tensors {form.needed}")
    converted = [part for p, t in zip(order, tensors) for part in convert(form, p, t)]
    inputs, classes = widths_of(converted[0])[0], widths_of(converted[-1])[1]
    found = {"model": form.model, "layers": len(order), "activation": "relu", **form.options}
    if form.model == "gat":
        if "activation" not in options:
            raise ValueError("activation: missing (expected \"relu\", as nn.GAT has, or \"elu\")")
        more, classes = attention_options(tensors, converted, layer)
        found.update(more)
    else:
        widths = [widths_of(l)[1] for l in converted]
        found["hidden"] = equal("widths of hidden layers", widths[:-1] or widths)
    found["bias"] = any("bias" in name for l in converted for name in l)
    model = make_model({"normalize_features": "none", **found, **options}, inputs, classes)
    fill(model.weights, converted)
    if check is not None:
        check_logits(model, *check)
    return model
