#!/usr/bin/env python3
"""Models between Starling and PyTorch Geometric (PyG). docs/MODELS.md has the names of tensors.

Usage: contrib/pyg.py logits CHECKPOINT DATASET LOGITS.npy
           apply a checkpoint of `starling train` in PyG
       contrib/pyg.py scores CHECKPOINT DATASET PAIRS.npy SCORES.npy
           score pairs of vertices (k, 2) in PyG, by a checkpoint of --task links; mlp of gcn and sage
       contrib/pyg.py train DATASET CHECKPOINT LOGITS.npy [--model gcn|sage|gat|gatv2|transformer|gine|rgcn] [--OPTION ...]
           train in PyG; write a checkpoint for `starling predict`, and PyG's logits. Edge features are
           read as in Starling, and relations by rgcn
       contrib/pyg.py compare LOGITS.npy LOGITS.npy
           print the largest difference; fail where it is above 1e-4

Needs, in an environment of its own: torch 2.2, torch_geometric 2.8, safetensors. DATASET is a
directory (docs/DATASETS.md) whose labels are numbers. Options of `train` are those of `starling
train`.
"""
import argparse
import json
import os
import sys
import warnings
from typing import Callable, NamedTuple

import numpy as np

if sys.argv[1:2] != ["compare"]:
    import safetensors
    import safetensors.numpy
    import torch
    import torch_geometric.nn

FORMAT = "starling-checkpoint-1"
TOLERANCE = 1e-4
DEFAULTS = {"model": "gcn", "aggregator": "mean", "layers": 2, "hidden": 64, "bias": True,
            "norm": "sym", "normalize-features": "none", "heads": 8,
            "out-heads": 1, "residual": "none", "encoder": "none", "bases": 0}  # of `starling train`


class Kind(NamedTuple):
    """A model of PyG that equals one of Starling's."""
    model: str  # of torch_geometric.nn
    options: Callable  # configuration -> keyword arguments of the model
    names: dict  # parameter of a layer in PyG -> tensor of a layer in a checkpoint
    loops: bool  # the model takes A + I


GCN = Kind("GCN", lambda c: {"normalize": c["norm"] == "sym", "add_self_loops": False},
           {"lin.weight": "weight", "bias": "bias"}, True)
SAGE_GCN = Kind("GraphSAGE", lambda c: {"aggr": "mean", "root_weight": False},
                {"lin_l.weight": "weight", "lin_l.bias": "bias"}, True)
SAGE = Kind("GraphSAGE", lambda c: {"aggr": c["aggregator"]},
            {"lin_r.weight": "lin_r.weight", "lin_l.weight": "lin_l.weight",
             "lin_l.bias": "lin_l.bias"}, False)
# PyG's GAT takes no weights of edges, and has as many heads in its last layer as in the others.
GAT = Kind("GAT", lambda c: {"heads": c["heads"], "act": "elu", "add_self_loops": False},
           {"lin.weight": "lin.weight", "att_src": "att_src", "att_dst": "att_dst", "bias": "bias"},
           True)
GATV2 = Kind("GAT", lambda c: {**GAT.options(c), "v2": True},
             {**{f"lin_{end}.{part}": f"lin_{end}.{part}" for end in "lr" for part in ("weight", "bias")},
              "att": "att", "bias": "bias"}, True)
TRANSFORMER = Kind("Transformer", lambda c: {"heads": c["heads"], "out_heads": c["out-heads"], "act": "elu"},
                   {f"lin_{matrix}.{part}": f"lin_{matrix}.{part}" for matrix in ("key", "value", "query", "skip")
                    for part in ("weight", "bias")}, False)
GINE = Kind("Gine", lambda c: {}, {"lin.weight": (0, "lin.weight"), "lin.bias": (0, "lin.bias"),
                                   "nn.0.weight": (1, "weight"), "nn.0.bias": (1, "bias"),
                                   "nn.2.weight": (2, "weight"), "nn.2.bias": (2, "bias")}, False)
RGCN = Kind("Rgcn", lambda c: {"bases": c["bases"] or None},
            {name: name for name in ("weight", "comp", "root", "bias")}, False)
# Parameters of layers with edge features.
EDGE_NAMES = {"lin_edge.weight": "lin_edge.weight", "att_edge": "att_edge"}
# A new model is a line here: --model and --aggregator.
KINDS = {("gcn", None): GCN, ("sage", "gcn"): SAGE_GCN, ("sage", "mean"): SAGE,
         ("sage", "sum"): SAGE, ("sage", "max"): SAGE, ("sage", "min"): SAGE,
         ("gat", None): GAT, ("gatv2", None): GATV2, ("transformer", None): TRANSFORMER,
         ("gine", None): GINE, ("rgcn", None): RGCN}


def find_kind(config):
    model = config["model"]
    key = (model, config["aggregator"] if model == "sage" else None)
    if key not in KINDS:
        sys.exit(f"pyg.py: no model of PyG for {key} (expected one of {list(KINDS)})")
    if config.get("precision") == "bf16":
        sys.exit("pyg.py: the model was trained with --precision bf16 (expected fp32)")
    if config.get("project-features"):
        sys.exit(f"pyg.py: --project-features {config['project-features']}: PyG's models have no "
                 "projection (expected 0)")
    if model in ("gine", "rgcn") and config["encoder"] != "none":
        sys.exit(f"pyg.py: --encoder {config['encoder']}: PyG's model has none (expected none)")
    if model == "transformer" and config["residual"] != "linear":
        sys.exit(f"pyg.py: --residual {config['residual']}: PyG's layers have --residual linear")
    if model != "transformer" and config["residual"] != "none":
        sys.exit(f"pyg.py: --residual {config['residual']}: PyG's models have none (expected none)")
    if model in ("gat", "gatv2") and config["out-heads"] != config["heads"]:
        sys.exit(f"pyg.py: --out-heads {config['out-heads']}: PyG's GAT has --heads "
                 f"{config['heads']} in all layers (expected the same)")
    return KINDS[key]


# ---- The dataset ----


class Dataset:
    def __init__(self, directory):
        self.directory = directory
        with open(os.path.join(directory, "meta.json")) as file:
            self.meta = json.load(file)
        self.indptr, self.indices = self.load("indptr"), self.load("indices")
        self.n = len(self.indptr) - 1
        self.rows = np.repeat(np.arange(self.n), np.diff(self.indptr))
        weights = self.load("weights")
        self.weights = np.ones(len(self.indices)) if weights is None else weights
        self.edge_features, self.edge_types = self.load("edge_features"), self.load("edge_types")
        self.relations = 0
        if self.edge_types is not None:
            self.relations = self.meta.get("relations", int(self.edge_types.max()) + 1)
        ids = self.load("original_ids")
        self.ids = np.arange(self.n) if ids is None else ids

    def load(self, name):
        path = os.path.join(self.directory, name + ".npy")
        return np.load(path) if os.path.exists(path) else None

    def features(self, norm, moments=None):
        """Dense features (n, f), or the identity in the original vertex order. `moments`: means and
        deviations of columns."""
        data, dense = self.load("features_data"), self.load("features")
        if data is not None:
            pointers = self.load("features_indptr")
            x = np.zeros((self.n, self.meta["features"]["count"]))
            np.add.at(x, (np.repeat(np.arange(self.n), np.diff(pointers)),
                          self.load("features_indices")), data)
        elif dense is not None:
            x = dense.astype(np.float64)
        else:
            x = np.zeros((self.n, self.n))
            x[np.arange(self.n), self.ids] = 1.0
        if norm in ("l1", "l2"):
            length = np.linalg.norm(x, ord=int(norm[1]), axis=1, keepdims=True)
            x /= np.where(length > 0, length, 1)
        if norm == "standard":
            x = (x - moments[0]) / moments[1]
        return torch.tensor(x, dtype=torch.float32)

    def adjacency(self, loops, row_norm):
        """Row v has the entries that v aggregates from. `loops`: each row has one more entry of
        weight 1 for v itself, also where the dataset has a loop. `row_norm`: rows sum to 1. PyG's
        SAGEConv takes edge weights only from a CSR tensor."""
        own = np.arange(self.n if loops else 0)
        rows, columns = np.append(self.rows, own), np.append(self.indices, own)
        values = np.append(self.weights, np.ones(len(own)))
        if row_norm:
            values = values / np.bincount(rows, values, self.n)[rows]
        order = np.lexsort((columns, rows))
        pointers = np.append(0, np.cumsum(np.bincount(rows, minlength=self.n)))
        return torch.sparse_csr_tensor(
            torch.tensor(pointers), torch.tensor(columns[order].astype(np.int64)),
            torch.tensor(values[order], dtype=torch.float32), (self.n, self.n))

    def training_labels(self):
        """The training vertices and their classes; all labelled ones where there is no split."""
        labels = self.load("labels").reshape(self.n).astype(np.int64)
        train = self.load("train_idx")
        train = np.arange(self.n) if train is None else train
        train = np.flatnonzero(train) if train.dtype == bool else train
        train = train[labels[train] >= 0]
        return torch.tensor(train), torch.tensor(labels[train])


# ---- Models ----


def make_transformer():
    """PyG has layers of graph transformers, but no model of them."""
    class Transformer(torch_geometric.nn.models.basic_gnn.BasicGNN):
        supports_edge_weight, supports_edge_attr = False, True

        def init_conv(self, width, columns, heads, out_heads, **options):
            last = getattr(self, "_is_conv_to_out", False)
            return torch_geometric.nn.TransformerConv(
                width, columns if last else columns // heads, heads=out_heads if last else heads,
                concat=not last, **options)
    return Transformer


def make_gine():
    """PyG has the layer of GINE, but no model of it."""
    class Gine(torch.nn.Module):
        def __init__(self, width, hidden, layers, classes, bias, edge_dim):
            super().__init__()
            linear = torch.nn.Linear
            widths = [width] + [hidden] * (layers - 1)
            self.convs = torch.nn.ModuleList(
                torch_geometric.nn.GINEConv(torch.nn.Sequential(
                    linear(w, hidden, bias), torch.nn.ReLU(),
                    linear(hidden, classes if l == layers - 1 else hidden, bias)), edge_dim=edge_dim)
                for l, w in enumerate(widths))

        def forward(self, x, edges, edge_attr):
            for l, conv in enumerate(self.convs):
                x = conv(x.relu() if l else x, edges, edge_attr)
            return x
    return Gine


def make_rgcn():
    """PyG has the layer of R-GCN, but no model of it."""
    class Rgcn(torch.nn.Module):
        def __init__(self, width, hidden, layers, classes, bias, relations, bases):
            super().__init__()
            widths = [width] + [hidden] * (layers - 1) + [classes]
            self.convs = torch.nn.ModuleList(
                torch_geometric.nn.RGCNConv(widths[l], widths[l + 1], relations, bases, bias=bias)
                for l in range(layers))

        def forward(self, x, edges, edge_type):
            for l, conv in enumerate(self.convs):
                x = conv(x.relu() if l else x, edges, edge_type)
            return x
    return Rgcn


MAKERS = {"Transformer": make_transformer, "Gine": make_gine, "Rgcn": make_rgcn}


def make_model(kind, config, width, classes, edge_features, relations):
    model = (MAKERS[kind.model]() if kind.model in MAKERS
             else getattr(torch_geometric.nn, kind.model))
    options = dict(kind.options(config))
    if kind is RGCN:
        options.update(relations=relations)
        edge_features = None
    if edge_features is not None:  # loops have the mean of the features of a vertex's edges
        options.update(edge_dim=edge_features.shape[1])
        options.pop("add_self_loops", None)
    hidden = config["hidden"] * (config["heads"] if kind in (GAT, GATV2, TRANSFORMER) else 1)
    return model(width, hidden, config["layers"], classes, bias=config["bias"], **options)


def operands(kind, config, data, moments=None):
    """The arguments of a model: features, adjacency and, where it reads edge features, these."""
    ends = torch.tensor(np.stack([data.indices, data.rows]).astype(np.int64))
    if kind is RGCN:
        return {"x": data.features(config["normalize-features"], moments), "edges": ends,
                "edge_type": torch.tensor(data.edge_types.astype(np.int64))}
    if kind in (GAT, GATV2, TRANSFORMER, GINE) and data.edge_features is not None:
        return {"x": data.features(config["normalize-features"], moments),
                "edges" if kind is GINE else "edge_index": ends,
                "edge_attr": torch.tensor(data.edge_features)}
    row_norm = config["model"] == "gcn" and config["norm"] == "row"
    adjacency = data.adjacency(kind.loops, row_norm)
    if kind is TRANSFORMER:  # TransformerConv adds the values of a CSR tensor to its messages
        rows = torch.repeat_interleave(torch.arange(data.n), adjacency.crow_indices().diff())
        adjacency = torch.stack([adjacency.col_indices(), rows])
    return {"x": data.features(config["normalize-features"], moments), "edge_index": adjacency}


def tensor_name(kind, parameter):
    """convs.0.lin.weight -> layer.0.weight; a layer of GINE is three of Starling's"""
    _, layer, name = parameter.split(".", 2)
    if kind is GINE:
        place, name = kind.names[name]
        return f"layer.{3 * int(layer) + place}.{name}"
    return f"layer.{layer}.{ {**EDGE_NAMES, **kind.names}[name]}"


def import_parameters(model, kind, tensors, last):
    """PyG's weights are transposed; its vectors are rows of a checkpoint. `last`: take weights of
    the last epoch instead of the best one."""
    tensors = {name: tensor for name, tensor in tensors.items() if ".moment" not in name}
    best = {name: tensor for name, tensor in tensors.items() if name.endswith(".best")}
    state = {}
    for parameter, value in learned(model):
        name = tensor_name(kind, parameter)
        if name not in tensors:
            sys.exit(f"pyg.py: the checkpoint has no tensor {name} for PyG's {parameter}")
        plain, chosen = tensors.pop(name), None if last else best.get(name + ".best")
        tensor = torch.tensor(plain if chosen is None else chosen)
        state[parameter] = (tensor.t() if value.dim() == 2 and kind is not RGCN
                            else tensor.reshape(value.shape))
    left = set(tensors) - set(best)
    if left:
        sys.exit(f"pyg.py: no parameter of PyG for {sorted(left)}")
    model.load_state_dict({**model.state_dict(), **state})


def learned(model):
    """The tensors that are learned: GINE's epsilon is not."""
    return [(name, value) for name, value in model.state_dict().items()
            if not name.endswith(".eps")]


def export_parameters(model, kind):
    def convert(value):
        value = value.detach()
        if value.dim() == 1 or kind is not RGCN:
            value = value.t() if value.dim() == 2 else value.reshape(1, -1)
        return value.reshape(-1, value.shape[-1]).contiguous().numpy()
    return {tensor_name(kind, parameter): convert(value)
            for parameter, value in learned(model)}


def write_logits(model, inputs, data, path):
    """In the original vertex order, as `starling predict` writes them."""
    model.eval()
    with torch.no_grad():
        logits = model(**inputs).numpy()
    ordered = np.empty_like(logits)
    ordered[data.ids] = logits
    np.save(path, ordered)


# ---- Commands ----


def read_checkpoint(args):
    with safetensors.safe_open(args.checkpoint, "np") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") != FORMAT:
            sys.exit(f"pyg.py: {args.checkpoint} is no checkpoint (expected format {FORMAT})")
        description = json.loads(metadata["description"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    return description, {**DEFAULTS, **description["configuration"]}, tensors


def restore(args, description, config, tensors, classes):
    """PyG's model with the weights of a checkpoint, its arguments, and the dataset."""
    data, kind = Dataset(args.dataset), find_kind(config)
    trained = description["dataset"]
    moments = [np.array(trained.get(name, [])) for name in ("feature_means", "feature_deviations")]
    inputs = operands(kind, config, data, moments)
    model = make_model(kind, config, inputs["x"].shape[1], classes,
                       inputs.get("edge_attr"), trained.get("relations"))
    import_parameters(model, kind, tensors, description.get("kept_epoch") == description["epoch"])
    return model.eval(), inputs, data


def apply_checkpoint(args):
    description, config, tensors = read_checkpoint(args)
    model, inputs, data = restore(args, description, config, tensors,
                                  description["dataset"]["classes"])
    write_logits(model, inputs, data, args.logits)


def make_mlp(linear, bias, vector):
    """PyG's usual decoder: a linear layer of both embeddings, relu, and a linear layer."""
    inner = linear.shape[1] // 2
    first, second = torch.nn.Linear(2 * len(linear), inner), torch.nn.Linear(inner, 1)
    first.weight.data = torch.cat([linear[:, :inner], linear[:, inner:]]).t()
    first.bias.data = bias[0, :inner] + bias[0, inner:]
    second.weight.data, second.bias.data = vector[:, :inner], vector[0, inner:inner + 1]
    return torch.nn.Sequential(first, torch.nn.ReLU(), second)


def score_pairs(args):
    description, config, tensors = read_checkpoint(args)
    decoder, layers = config["decoder"], config["layers"]
    if config["task"] != "links" or (decoder == "mlp" and config["model"] not in ("gcn", "sage")):
        sys.exit("pyg.py: expected a model of --task links, and of mlp --model gcn or sage")
    own = {name: tensor for name, tensor in tensors.items() if int(name.split(".")[1]) < layers}
    kept = ".best" if any(name.endswith(".best") for name in tensors) and (
        description.get("kept_epoch") != description["epoch"]) else ""
    behind = {name: torch.tensor(tensors[name + kept]) for name in tensors
              if name not in own and name + kept in tensors}
    width = config["hidden"] if decoder == "mlp" else description["dataset"]["classes"]
    model, inputs, data = restore(args, description, config, own, width)
    pairs = torch.tensor(np.load(args.pairs))
    with torch.no_grad():
        rows = torch.empty(data.n, width)
        rows[torch.tensor(data.ids)] = model(**inputs)
        source, target = rows[pairs[:, 0]], rows[pairs[:, 1]]
        if decoder == "mlp":
            mlp = make_mlp(behind[f"layer.{layers}.weight"], behind[f"layer.{layers}.bias"],
                           behind[f"layer.{layers + 1}.weight"])
            scores = mlp(torch.cat([source.relu(), target.relu()], 1))[:, 0]
        elif decoder == "distmult":
            scores = (source * behind[f"layer.{layers}.weight"] * target).sum(1)
        else:
            scores = (source * target).sum(1)
    np.save(args.scores, scores.numpy())


def train(args):
    torch.manual_seed(args.seed)
    config = {name: vars(args)[name.replace("-", "_")] for name in DEFAULTS}
    if config["model"] in ("gat", "gatv2"):
        config["out-heads"] = config["heads"]
    if config["model"] == "transformer" and not args.residual:
        config["residual"] = "linear"
    config["residual"] = config["residual"] or "none"
    kind, data = find_kind(config), Dataset(args.dataset)
    inputs = operands(kind, config, data)
    vertices, labels = data.training_labels()
    classes = int(data.meta.get("classes", int(labels.max()) + 1))
    width, edge_features = inputs["x"].shape[1], inputs.get("edge_attr")
    model = make_model(kind, config, width, classes, edge_features, data.relations)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for _ in range(args.epochs):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(**inputs)[vertices], labels).backward()
        optimizer.step()
    description = {"configuration": config, "epoch": args.epochs,
                   "dataset": {"name": os.path.basename(os.path.abspath(args.dataset)),
                               "vertices": data.n, "features": width, "classes": classes,
                               "rows": "sources of edges"}}
    if kind is RGCN:
        description["dataset"]["relations"] = data.relations
    if edge_features is not None:
        description["dataset"]["edge_features"] = edge_features.shape[1]
    safetensors.numpy.save_file(export_parameters(model, kind), args.checkpoint,
                                {"format": FORMAT, "description": json.dumps(description)})
    write_logits(model, inputs, data, args.logits)


def compare(args):
    """Logits that hardly depend on the vertex would say nothing."""
    a, b = (np.load(path) for path in (args.first, args.second))
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        sys.exit(f"pyg.py: shapes {a.shape} and {b.shape}, or logits that are not finite")
    difference, spread = np.abs(a - b).max(), min(a.std(axis=0).max(), b.std(axis=0).max())
    print(f"largest difference {difference:.2g}, largest logit {np.abs(b).max():.3g}, "
          f"spread {spread:.3g}")
    if not (difference <= TOLERANCE and spread > 0.1):
        sys.exit(f"pyg.py: expected a difference of at most {TOLERANCE}, and a spread above 0.1")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("logits")
    for name in ("checkpoint", "dataset", "logits"):
        command.add_argument(name)
    command.set_defaults(run=apply_checkpoint)
    command = commands.add_parser("scores")
    for name in ("checkpoint", "dataset", "pairs", "scores"):
        command.add_argument(name)
    command.set_defaults(run=score_pairs)
    command = commands.add_parser("train")
    for name in ("dataset", "checkpoint", "logits"):
        command.add_argument(name)
    command.add_argument("--model", choices=("gcn", "sage", "gat", "gatv2", "transformer", "gine",
                                               "rgcn"))
    command.add_argument("--aggregator", choices=("gcn", "mean", "sum", "max", "min"))
    command.add_argument("--norm", choices=("sym", "row"))
    command.add_argument("--normalize-features", choices=("none", "l1", "l2"))
    command.add_argument("--residual", choices=("none", "linear"))
    command.add_argument("--encoder", choices=("none",))
    command.add_argument("--bias", action=argparse.BooleanOptionalAction)
    for name in ("--layers", "--hidden", "--heads", "--out-heads", "--bases", "--epochs",
                 "--seed"):
        command.add_argument(name, type=int)
    command.set_defaults(**{name.replace("-", "_"): value for name, value in DEFAULTS.items()},
                         epochs=200, seed=0)
    command.set_defaults(residual=None)  # the model's
    command.add_argument("--lr", type=float, default=0.01)
    command.set_defaults(run=train)
    command = commands.add_parser("compare")
    for name in ("first", "second"):
        command.add_argument(name)
    command.set_defaults(run=compare)
    return parser.parse_args()


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state")
    arguments = parse()
    arguments.run(arguments)
