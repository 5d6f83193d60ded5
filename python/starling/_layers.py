"""Layers of PyTorch Geometric that use Starling's kernels: starling.torch.patch."""
import weakref

import torch
import torch.utils._python_dispatch
import torch_geometric.nn as nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, remove_self_loops

from .torch import COLUMNS, HEADS, Adjacency, gat, sage_max, spmm

FEW = 0.1  # the largest share of items that are not 0 of features whose zeros are passed over

# ---- What is made once of a tensor ----


def checksum(tensor):
    """Numbers that a change of the values changes, also one that PyTorch does not count: NumPy's,
    and those through .data. None of None."""
    if tensor is None:
        return None
    bits = tensor.detach().contiguous().view(-1)
    bits = bits.view(torch.int32) if bits.dtype == torch.float32 else bits
    sums = [int(bits.sum())]
    for period in (997, 1009):  # a swap is seen unless positions differ by a multiple of both
        whole = len(bits) // period * period
        sums += bits[:whole].view(-1, period).sum(0).tolist() + bits[whole:].tolist()
    return None if tensor.is_inference() else tensor._version, hash(tuple(sums))


class Made:
    """Adjacencies by the tensors of their edges, as long as these live and stay as they are."""

    MOST = 16

    def __init__(self):
        self.entries = []  # (key, weak references to the tensors, checksums, adjacency)

    def get(self, key, tensors, make):
        sums = [checksum(t) for t in tensors]
        for entry in self.entries:
            if (entry[0] == key and entry[2] == sums and
                    all((r is None and t is None) or (r is not None and r() is t)
                        for r, t in zip(entry[1], tensors))):
                return entry[3]
        adjacency = make()
        references = [None if t is None else weakref.ref(t, self.forget) for t in tensors]
        self.entries = self.entries[1 - self.MOST:] + [(key, references, sums, adjacency)]
        return adjacency

    def forget(self, reference):
        self.entries = [e for e in self.entries if all(r is not reference for r in e[1])]


made = Made()

# Features that a caller has named, and the adjacency of their items that are not 0.
named = []  # (weak reference, version, adjacency)


def name_features(x):
    if (x.is_inference() or x.dim() != 2 or x.dtype != torch.float32 or x.device.type != "cpu" or
            x.requires_grad):
        raise ValueError(f"features: {tuple(x.shape)} {x.dtype} on {x.device}, requires_grad="
                         f"{x.requires_grad} (expected (vertices, columns) of float32 on the CPU)")
    named[:] = [entry for entry in named if entry[0]() is not None and entry[0]() is not x]
    if x.numel() and torch.count_nonzero(x) <= FEW * x.numel():
        row, column = x.nonzero(as_tuple=True)
        sparse = Adjacency(torch.stack([column, row]), tuple(x.shape), x[row, column])
        named.append((weakref.ref(x), x._version, sparse))


def is_simple(linear):
    """Whether the layer is its weight and bias alone."""
    return (type(linear) in (torch.nn.Linear, nn.Linear) and
            not isinstance(linear.weight, torch.nn.parameter.UninitializedParameter) and
            linear.weight.dtype == torch.float32 and not has_hooks(linear))


def has_hooks(module):
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or
                getattr(module, "_backward_pre_hooks", None) or "forward" in module.__dict__)


def product(weight, x):
    """x @ weight.t(), without the zeros of features that were named."""
    for reference, version, sparse in named:
        if reference() is x and x._version == version and not x.requires_grad:
            return spmm(sparse, weight.t())
    return x @ weight.t()


def linear_of(linear, x):
    if not is_simple(linear):
        return linear(x)
    out = product(linear.weight, x)
    return out if linear.bias is None else out + linear.bias


# ---- Calls that the kernels serve ----


def is_plain(layer, x, edge_index, aggregators):
    """Whether a call is of a graph on the CPU, without anything that kernels lack."""
    return (type(x) in (torch.Tensor, torch.nn.Parameter) and type(edge_index) is torch.Tensor and
            x.layout == edge_index.layout == torch.strided and
            x.device.type == edge_index.device.type == "cpu" and x.dtype == torch.float32 and
            x.dim() == 2 and x.numel() > 0 and edge_index.dtype == torch.int64 and
            edge_index.dim() == 2 and edge_index.size(0) == 2 and layer.aggr in aggregators and
            layer.flow == "source_to_target" and layer.node_dim in (-2, 0) and
            layer.decomposed_layers == 1 and not layer.explain and not has_other_steps(layer) and
            not is_watched())


STEPS = ("propagate", "message", "aggregate", "update", "message_and_aggregate", "edge_update",
         "edge_updater")


def has_other_steps(layer):
    """Whether somebody has changed what a layer does between its vertices."""
    return (any(step in layer.__dict__ or getattr(layer, f"_{step}_forward_hooks", None) or
                getattr(layer, f"_{step}_forward_pre_hooks", None) for step in STEPS) or
            type(layer.aggr_module) is not AGGREGATIONS[layer.aggr] or has_hooks(layer.aggr_module))


def is_watched():
    """Whether PyTorch records, rewrites or narrows what is computed, or a hook watches all
    modules."""
    try:
        autocast = torch.is_autocast_enabled("cpu")
    except TypeError:  # before PyTorch 2.4
        autocast = torch.is_autocast_cpu_enabled()
    hooks = torch.nn.modules.module
    return (autocast or hooks._global_forward_hooks or hooks._global_forward_pre_hooks or
            hooks._global_backward_hooks or torch.jit.is_tracing() or torch.jit.is_scripting() or
            torch.utils._python_dispatch._get_current_dispatch_mode() is not None or
            torch._C._functorch.peek_interpreter_stack() is not None)


class Patched:
    """What the layers below have in common. Each is a class of PyTorch Geometric's, with another
    forward: copies and pickled layers stay patched, and have their own weights."""


class GCNConv(Patched, nn.GCNConv):
    def forward(self, x, edge_index, edge_weight=None):
        plain = is_plain(self, x, edge_index, ("add", "sum"))
        if not plain or not self.serves(edge_index, edge_weight):
            return super().forward(x, edge_index, edge_weight)
        adjacency = self.adjacency(x.size(0), edge_index, edge_weight)
        weight = getattr(self.lin, "weight", None)
        if is_simple(self.lin) and self.lin.bias is None and weight.size(1) < weight.size(0):
            out = linear_of(self.lin, spmm(adjacency, x))
        else:
            out = spmm(adjacency, linear_of(self.lin, x))
        return out if self.bias is None else out + self.bias

    @staticmethod
    def serves(edge_index, weight):
        return weight is None or (
            type(weight) is torch.Tensor and weight.dtype == torch.float32 and
            weight.device.type == "cpu" and weight.layout == torch.strided and
            weight.shape == edge_index.shape[1:] and not weight.requires_grad)

    def adjacency(self, n, index, weight):
        if not self.normalize:
            return made.get(("as it is", n), (index, weight), lambda: Adjacency(index, n, weight))

        def norm():
            return gcn_norm(index, weight, n, self.improved, self.add_self_loops, self.flow,
                            torch.float32)
        if not self.cached:
            key = "gcn", n, self.improved, self.add_self_loops
            return made.get(key, (index, weight), lambda: Adjacency(norm()[0], n, norm()[1]))
        if self._cached_edge_index is None:
            self._cached_edge_index = norm()
        index, weight = self._cached_edge_index
        return made.get(("as it is", n), (index, weight), lambda: Adjacency(index, n, weight))


class SAGEConv(Patched, nn.SAGEConv):
    def forward(self, x, edge_index, size=None):
        plain = is_plain(self, x, edge_index, ("mean", "sum", "add", "max"))
        if not plain or size is not None or self.project:
            return super().forward(x, edge_index, size)
        adjacency = self.adjacency(x.size(0), edge_index)
        if self.aggr == "max":
            out = self.lin_l(sage_max(adjacency, x))
        elif is_simple(self.lin_l) and self.lin_l.weight.size(0) < self.lin_l.weight.size(1):
            out = spmm(adjacency, product(self.lin_l.weight, x))
            out = out if self.lin_l.bias is None else out + self.lin_l.bias
        else:
            out = self.lin_l(spmm(adjacency, x))
        if self.root_weight:
            out = out + linear_of(self.lin_r, x)
        return torch.nn.functional.normalize(out, p=2.0, dim=-1) if self.normalize else out

    def adjacency(self, n, edge_index):
        def make():
            if self.aggr == "max":
                return Adjacency(edge_index, n, unique=True)
            if self.aggr != "mean":
                return Adjacency(edge_index, n)
            target = edge_index[1]
            degree = torch.bincount(target, minlength=n).clamp_(min=1)
            return Adjacency(edge_index, n, degree.to(torch.float32).reciprocal_()[target])
        return made.get((self.aggr, n), (edge_index,), make)


class GINConv(Patched, nn.GINConv):
    def forward(self, x, edge_index, size=None):
        if not is_plain(self, x, edge_index, ("add", "sum")) or size is not None:
            return super().forward(x, edge_index, size)
        n = x.size(0)
        adjacency = made.get(("sum", n), (edge_index,), lambda: Adjacency(edge_index, n))
        return self.nn(spmm(adjacency, x) + (1 + self.eps) * x)


class GATConv(Patched, nn.GATConv):
    def forward(self, x, edge_index, edge_attr=None, size=None, return_attention_weights=None):
        plain = is_plain(self, x, edge_index, ("add", "sum")) and edge_attr is None
        if (not plain or size is not None or return_attention_weights is not None or
                self.edge_dim is not None or self.lin is None or self.heads > HEADS or
                self.heads * self.out_channels > COLUMNS or not 0 <= self.negative_slope <= 1 or
                not self.dropout < 1 or self.out_channels < 1):
            return super().forward(x, edge_index, edge_attr, size, return_attention_weights)
        n, heads, width = x.size(0), self.heads, self.out_channels
        adjacency = self.adjacency(n, edge_index)
        residual = None if self.res is None else linear_of(self.res, x)
        values = linear_of(self.lin, x).view(n, heads, width)
        out = gat(adjacency, values, (values * self.att_src).sum(-1),
                  (values * self.att_dst).sum(-1), self.negative_slope,
                  self.dropout if self.training else 0.0)
        out = out.reshape(n, heads * width) if self.concat else out.mean(1)
        if residual is not None:
            out = out + residual
        return out if self.bias is None else out + self.bias

    def adjacency(self, n, edge_index):
        def make():
            if not self.add_self_loops:
                return Adjacency(edge_index, n)
            index, _ = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=n)
            return Adjacency(index, n)
        return made.get(("gat", n, self.add_self_loops), (edge_index,), make)


AGGREGATIONS = {"add": nn.SumAggregation, "sum": nn.SumAggregation, "mean": nn.MeanAggregation,
                "max": nn.MaxAggregation}
OURS = {nn.GCNConv: GCNConv, nn.SAGEConv: SAGEConv, nn.GINConv: GINConv, nn.GATConv: GATConv}


def patch(model, features):
    if features is not None:
        name_features(features)
    count = 0
    for layer in model.modules():
        if type(layer) in OURS and "forward" not in layer.__dict__:
            layer.__class__ = OURS[type(layer)]
        count += type(layer) in OURS.values()
    return count


def unpatch(model):
    count = 0
    for layer in model.modules():
        if type(layer) in OURS.values():
            layer.__class__ = next(theirs for theirs, ours in OURS.items() if ours is type(layer))
            count += 1
    return count
