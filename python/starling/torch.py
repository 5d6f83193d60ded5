"""Starling's kernels for models of PyTorch, on the CPU.

    import starling.torch
    adjacency = starling.torch.Adjacency(edge_index, num_nodes)
    y = starling.torch.spmm(adjacency, x)          # a sum over neighbours, with its gradient
    starling.torch.patch(model)                    # layers of PyTorch Geometric use the kernels

docs/PYTHON.md says what is patched. Nothing here starts StarPU or MPI.
"""
import ctypes
import types

import torch
from torch.autograd.function import once_differentiable

from ._library import Handle, Heads, library


def _pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def _floats(tensor, rows, what):
    if tensor.dtype != torch.float32 or tensor.device.type != "cpu" or tensor.size(0) != rows:
        raise ValueError(f"{what}: {tuple(tensor.shape)} {tensor.dtype} on {tensor.device} "
                         f"(expected {rows} rows of float32 on the CPU)")
    return tensor.detach().contiguous()


class Adjacency:
    """A sparse matrix (rows, columns): row edge_index[1, e] has an entry in column
    edge_index[0, e], of value weights[e], or 1. `unique`: an edge that is there several times is
    one edge. Rows and columns: `size`, one number or two."""

    def __init__(self, edge_index, size, weights=None, unique=False):
        rows, columns = size if isinstance(size, tuple) else (size, size)
        edge_index = edge_index.detach().to(torch.int64)
        if unique:
            if weights is not None:
                raise ValueError("unique: an edge with a weight is not merged")
            pair = torch.unique(edge_index[1] * columns + edge_index[0])
            edge_index = torch.stack([pair % columns, pair // columns])
        sources, targets = edge_index[0].contiguous(), edge_index[1].contiguous()
        if weights is not None and weights.requires_grad:
            raise ValueError("weights: they have no gradient here (expected weights.detach())")
        values = None if weights is None else _floats(weights, edge_index.size(1), "weights")
        self.rows, self.columns, self.entries = rows, columns, edge_index.size(1)
        self._handle = Handle(library.starling_adjacency_free)
        library.starling_adjacency_create(rows, columns, self.entries, _pointer(targets),
                                          _pointer(sources),
                                          None if values is None else _pointer(values),
                                          self._handle.out())

    @property
    def pointer(self):
        return self._handle.pointer


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(context, adjacency, x):
        context.adjacency = adjacency
        x = _floats(x, adjacency.columns, "x")
        return _Sum._of(adjacency, x, 0, adjacency.rows)

    @staticmethod
    @once_differentiable
    def backward(context, gradient):
        adjacency = context.adjacency
        gradient = _floats(gradient, adjacency.rows, "the gradient")
        return None, _Sum._of(adjacency, gradient, 1, adjacency.columns)

    @staticmethod
    def _of(adjacency, x, transposed, rows):
        out = torch.empty(rows, *x.shape[1:])
        if out.numel():
            library.starling_adjacency_sum(adjacency.pointer, transposed, out[0].numel(),
                                           _pointer(x), torch.get_num_threads(), _pointer(out))
        return out


class _Max(torch.autograd.Function):
    @staticmethod
    def forward(context, adjacency, x):
        x = _floats(x, adjacency.columns, "x")
        out = torch.empty(adjacency.rows, x.size(1))
        argmax = torch.empty(adjacency.rows, x.size(1), dtype=torch.int32)
        library.starling_adjacency_max(adjacency.pointer, 0, x.size(1), _pointer(x),
                                       torch.get_num_threads(), _pointer(out), _pointer(argmax))
        context.adjacency = adjacency
        context.save_for_backward(argmax)
        return out

    @staticmethod
    @once_differentiable
    def backward(context, gradient):
        adjacency, (argmax,) = context.adjacency, context.saved_tensors
        gradient = _floats(gradient, adjacency.rows, "the gradient")
        out = torch.empty(adjacency.columns, gradient.size(1))
        library.starling_adjacency_max_back(adjacency.pointer, gradient.size(1),
                                            _pointer(gradient), _pointer(argmax),
                                            torch.get_num_threads(), _pointer(out))
        return None, out


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(context, adjacency, values, source, target, slope, dropout):
        n, heads, width = values.shape
        wanted = any(context.needs_input_grad[1:4])
        seed = int(torch.randint(2**62, ())) if dropout > 0 else 0
        how = Heads(heads, width, slope, int(wanted or dropout > 0), dropout, seed)
        out = torch.empty(n, heads, width)
        context.kept = Handle(library.starling_attention_free)
        context.adjacency = adjacency  # which the handle borrows
        context.shape = n, heads, width
        given = [_floats(values, adjacency.rows, "values"),
                 _floats(source, adjacency.rows, "source scores"),
                 _floats(target, adjacency.rows, "target scores")]
        library.starling_attention_forward(adjacency.pointer, ctypes.byref(how),
                                           *map(_pointer, given), torch.get_num_threads(),
                                           _pointer(out), context.kept.out())
        if not wanted:
            context.kept = None
        return out

    @staticmethod
    @once_differentiable
    def backward(context, gradient):
        n, heads, width = context.shape
        gradient = _floats(gradient, n, "the gradient")
        back = torch.empty(n, heads, width), torch.empty(n, heads), torch.empty(n, heads)
        library.starling_attention_back(context.kept.pointer, _pointer(gradient),
                                        torch.get_num_threads(), *map(_pointer, back))
        return None, *back, None, None


def spmm(adjacency, x):
    """A·x, of x (columns, …) float32; the gradient is Aᵀ times that of the result."""
    return _Sum.apply(adjacency, x)


def sage_max(adjacency, x):
    """The largest value of the neighbours, column by column, of x (columns, width); 0 without
    neighbours. Make `adjacency` with unique=True where edges may be there several times."""
    return _Max.apply(adjacency, x)


def gat(adjacency, values, source, target, slope=0.2, dropout=0.0):
    """Graph attention: of values (vertices, heads, width) and scores source, target (vertices,
    heads), the sums of the neighbours' values times softmax(LeakyReLU(source + target)).
    `dropout`: the share of the attention that is dropped, by a seed that torch draws."""
    return _Attention.apply(adjacency, values, source, target, float(slope), float(dropout))


# ---- Layers of PyTorch Geometric ----


class _Kept:
    """Adjacencies by the tensors that they were made of, the last few."""

    MOST = 8

    def __init__(self):
        self.entries = []

    def get(self, key, tensors, make):
        for k, known, versions, value in self.entries:
            if k == key and len(known) == len(tensors) and all(
                    a is b and (a is None or a._version == v)
                    for a, b, v in zip(known, tensors, versions)):
                return value
        value = make()
        versions = [None if t is None else t._version for t in tensors]
        self.entries = self.entries[1 - self.MOST:] + [(key, tensors, versions, value)]
        return value


_kept = _Kept()


def _plain(layer, x, edge_index):
    """Whether a call of a layer is of a graph on the CPU, without anything that kernels lack."""
    return (isinstance(x, torch.Tensor) and x.dim() == 2 and x.dtype == torch.float32 and
            x.device.type == "cpu" and type(edge_index) is torch.Tensor and
            edge_index.layout == torch.strided and
            layer.flow == "source_to_target" and not layer.decomposed_layers > 1 and
            not layer._explain and not _has_hooks(layer))


def _has_hooks(layer):
    names = ("propagate", "message", "aggregate", "message_and_aggregate", "edge_update")
    return any(getattr(layer, f"_{name}_forward{when}_hooks", None)
               for name in names for when in ("", "_pre"))


def _gcn(layer, original, x, edge_index, edge_weight=None):
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    if not _plain(layer, x, edge_index) or (edge_weight is not None and edge_weight.requires_grad):
        return original(x, edge_index, edge_weight)
    n = x.size(0)

    def make():
        index, weight = edge_index, edge_weight
        if layer.normalize:
            index, weight = gcn_norm(index, weight, n, layer.improved, layer.add_self_loops,
                                     layer.flow, x.dtype)
        return Adjacency(index, n, weight)
    key = "gcn", n, layer.normalize, layer.improved, layer.add_self_loops
    adjacency = _kept.get(key, (edge_index, edge_weight), make)
    if layer.in_channels < layer.out_channels:
        out = layer.lin(spmm(adjacency, x))
    else:
        out = spmm(adjacency, layer.lin(x))
    return out if layer.bias is None else out + layer.bias


def _sage(layer, original, x, edge_index, size=None):
    if (not _plain(layer, x, edge_index) or size is not None or layer.project or
            layer.aggr not in ("mean", "sum", "add", "max")):
        return original(x, edge_index, size)
    n = x.size(0)

    def make():
        if layer.aggr == "max":
            return Adjacency(edge_index, n, unique=True)
        weights = None
        if layer.aggr == "mean":
            target = edge_index[1]
            degree = torch.bincount(target, minlength=n).clamp_(min=1)
            weights = degree.to(torch.float32).reciprocal_()[target]
        return Adjacency(edge_index, n, weights)
    adjacency = _kept.get(("sage", n, layer.aggr), (edge_index,), make)
    weight, bias = layer.lin_l.weight, layer.lin_l.bias
    if layer.aggr == "max":
        out = layer.lin_l(sage_max(adjacency, x))
    elif weight.size(0) < weight.size(1):
        out = spmm(adjacency, x @ weight.t())
        out = out if bias is None else out + bias
    else:
        out = layer.lin_l(spmm(adjacency, x))
    if layer.root_weight:
        out = out + layer.lin_r(x)
    return torch.nn.functional.normalize(out, p=2.0, dim=-1) if layer.normalize else out


def _gin(layer, original, x, edge_index, size=None):
    if not _plain(layer, x, edge_index) or size is not None or layer.aggr not in ("sum", "add"):
        return original(x, edge_index, size)
    n = x.size(0)
    adjacency = _kept.get(("gin", n), (edge_index,), lambda: Adjacency(edge_index, n))
    return layer.nn(spmm(adjacency, x) + (1 + layer.eps) * x)


def _gat(layer, original, x, edge_index, edge_attr=None, size=None, **more):
    from torch_geometric.utils import add_self_loops, remove_self_loops
    if (not _plain(layer, x, edge_index) or edge_attr is not None or size is not None or
            any(v is not None for v in more.values()) or layer.edge_dim is not None or
            getattr(layer, "lin", None) is None or not 0 <= layer.negative_slope <= 1):
        return original(x, edge_index, edge_attr, size, **more)
    n, heads, width = x.size(0), layer.heads, layer.out_channels

    def make():
        index = edge_index
        if layer.add_self_loops:
            index, _ = add_self_loops(remove_self_loops(index)[0], num_nodes=n)
        return Adjacency(index, n)
    adjacency = _kept.get(("gat", n, layer.add_self_loops), (edge_index,), make)
    residual = layer.res(x) if getattr(layer, "res", None) is not None else None
    values = layer.lin(x).view(n, heads, width)
    out = gat(adjacency, values, (values * layer.att_src).sum(-1),
              (values * layer.att_dst).sum(-1), layer.negative_slope,
              layer.dropout if layer.training else 0.0)
    out = out.reshape(n, heads * width) if layer.concat else out.mean(1)
    if residual is not None:
        out = out + residual
    return out if layer.bias is None else out + layer.bias


_LAYERS = {"GCNConv": _gcn, "SAGEConv": _sage, "GINConv": _gin, "GATConv": _gat}


def patch(model):
    """Make the GCNConv, SAGEConv, GINConv and GATConv of a model of PyTorch Geometric use
    Starling's kernels, and return how many there are. Weights and the model's interface stay. A
    call that the kernels do not serve goes the old way: another device or type, a sparse tensor,
    features of edges, weights of edges with a gradient. An adjacency is made once for each
    edge_index, a tensor, and its version."""
    import torch_geometric.nn as nn
    count = 0
    for layer in model.modules():
        ours = _LAYERS.get(type(layer).__name__)
        if ours is None or type(layer) is not getattr(nn, type(layer).__name__):
            continue
        count += 1
        if "forward" in layer.__dict__:
            continue

        def forward(self, *arguments, _ours=ours, _original=layer.forward, **named):
            return _ours(self, _original, *arguments, **named)
        layer.forward = types.MethodType(forward, layer)
    return count


def unpatch(model):
    """Give the layers of a patched model their own way back."""
    for layer in model.modules():
        if type(layer).__name__ in _LAYERS:
            layer.__dict__.pop("forward", None)
