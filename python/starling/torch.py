"""Starling's kernels for models of PyTorch, on the CPU.

    import starling.torch
    adjacency = starling.torch.Adjacency(edge_index, num_nodes)
    y = starling.torch.spmm(adjacency, x)          # a sum over neighbours, with its gradient
    starling.torch.patch(model)                    # layers of PyTorch Geometric use the kernels

docs/PYTHON.md says what is patched. Nothing here starts StarPU or MPI.
"""
import ctypes

import torch
from torch.autograd.function import once_differentiable

from ._library import Handle, Heads, library

HEADS, COLUMNS = 256, 16384  # the most heads of attention, and columns of all of them


def _pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def _empty(*shape):
    return torch.empty(*shape, dtype=torch.float32, device="cpu")


def _floats(what, tensor, *shape):
    """The values of a tensor in C order, without its history; `shape`: None is any size."""
    fits = tensor.dim() == len(shape) and all(w in (None, s) for w, s in zip(shape, tensor.shape))
    if tensor.dtype != torch.float32 or tensor.device.type != "cpu" or not fits:
        expected = ", ".join("any" if w is None else str(w) for w in shape)
        raise ValueError(f"{what}: {tuple(tensor.shape)} {tensor.dtype} on {tensor.device} "
                         f"(expected ({expected}) of float32 on the CPU)")
    return tensor.detach().resolve_neg().contiguous()


class Adjacency:
    """A sparse matrix (rows, columns): row edge_index[1, e] has an entry in column
    edge_index[0, e], of value weights[e], or 1. `size`: rows and columns, one number or two.
    `unique`: an edge that is there several times is one edge. The arrays are copied."""

    def __init__(self, edge_index, size, weights=None, unique=False):
        rows, columns = size if isinstance(size, tuple) else (size, size)
        integer = not (edge_index.is_floating_point() or edge_index.is_complex())
        if (edge_index.dim() != 2 or edge_index.size(0) != 2 or not integer or
                edge_index.device.type != "cpu" or edge_index.layout != torch.strided):
            raise ValueError(f"edge_index: {tuple(edge_index.shape)} {edge_index.dtype} on "
                             f"{edge_index.device} (expected (2, edges) of integers on the CPU)")
        edges = edge_index.size(1)
        edge_index = edge_index.detach().to(torch.int64)
        values = None
        if weights is not None:
            if weights.requires_grad:
                raise ValueError("weights: they get no gradient (expected weights.detach())")
            if unique:
                raise ValueError("unique: an edge with a weight is not merged")
            values = _floats("weights", weights, edges)
        if unique and edges:
            if edge_index.min() < 0 or (edge_index.amax(1) >= torch.tensor([columns, rows])).any():
                raise ValueError(f"edge_index: a vertex is none of {columns} columns and {rows} rows")
            pair = torch.unique(edge_index[1] * columns + edge_index[0])
            edge_index = torch.stack([pair % columns, pair // columns])
        sources, targets = edge_index[0].contiguous(), edge_index[1].contiguous()
        self.rows, self.columns, self.entries = rows, columns, edge_index.size(1)
        self.negative = values is not None and edges > 0 and not bool(values.min() >= 0)
        self._handle = Handle(library.starling_adjacency_free)
        library.starling_adjacency_create(rows, columns, self.entries, _pointer(targets),
                                          _pointer(sources),
                                          None if values is None else _pointer(values),
                                          self._handle.out())

    @property
    def pointer(self):
        return self._handle.pointer


def _sum(adjacency, x, transposed, rows):
    out = _empty(rows, *x.shape[1:])
    if out.numel():
        library.starling_adjacency_sum(adjacency.pointer, transposed, out[0].numel(), _pointer(x),
                                       torch.get_num_threads(), _pointer(out))
    return out


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(context, adjacency, x):
        context.adjacency = adjacency
        shape = adjacency.columns, *[None] * (x.dim() - 1)
        return _sum(adjacency, _floats("x", x, *shape), 0, adjacency.rows)

    @staticmethod
    @once_differentiable
    def backward(context, gradient):
        adjacency = context.adjacency
        shape = adjacency.rows, *[None] * (gradient.dim() - 1)
        return None, _sum(adjacency, _floats("the gradient", gradient, *shape), 1,
                          adjacency.columns)


class _Max(torch.autograd.Function):
    @staticmethod
    def forward(context, adjacency, x):
        x = _floats("x", x, adjacency.columns, None)
        out = _empty(adjacency.rows, x.size(1))
        argmax = torch.empty(out.shape, dtype=torch.int32, device="cpu")
        if out.numel():
            library.starling_adjacency_max(adjacency.pointer, 0, x.size(1), _pointer(x),
                                           torch.get_num_threads(), _pointer(out),
                                           _pointer(argmax))
        context.adjacency = adjacency
        context.save_for_backward(argmax)
        return out

    @staticmethod
    @once_differentiable
    def backward(context, gradient):
        adjacency, (argmax,) = context.adjacency, context.saved_tensors
        gradient = _floats("the gradient", gradient, *argmax.shape)
        out = _empty(adjacency.columns, gradient.size(1))
        if out.numel():
            library.starling_adjacency_max_back(adjacency.pointer, gradient.size(1),
                                                _pointer(gradient), _pointer(argmax),
                                                torch.get_num_threads(), _pointer(out))
        return None, out


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(context, adjacency, values, source, target, slope, dropout):
        if adjacency.negative:
            raise ValueError("gat: the adjacency has a negative weight (expected 0 or more)")
        values = _floats("values", values, adjacency.rows, None, None)
        n, heads, width = values.shape
        given = [values, _floats("source", source, n, heads), _floats("target", target, n, heads)]
        wanted = any(context.needs_input_grad[1:4])
        seed = int(torch.randint(2**62, (), device="cpu")) if dropout > 0 else 0
        how = Heads(heads, width, slope, int(wanted or dropout > 0), dropout, seed)
        out = _empty(n, heads, width)
        kept = Handle(library.starling_attention_free)
        library.starling_attention_forward(adjacency.pointer, ctypes.byref(how),
                                           *map(_pointer, given), torch.get_num_threads(),
                                           _pointer(out), kept.out())
        context.adjacency = adjacency  # which the handle borrows
        context.kept = kept if wanted else None
        context.shape = n, heads, width
        return out

    @staticmethod
    @once_differentiable
    def backward(context, gradient):
        n, heads, width = context.shape
        gradient = _floats("the gradient", gradient, n, heads, width)
        back = _empty(n, heads, width), _empty(n, heads), _empty(n, heads)
        library.starling_attention_back(context.kept.pointer, _pointer(gradient),
                                        torch.get_num_threads(), *map(_pointer, back))
        return None, *back, None, None


def spmm(adjacency, x):
    """A·x, of x (columns, …) float32; the gradient is Aᵀ times that of the result."""
    return _Sum.apply(adjacency, x)


def sage_max(adjacency, x):
    """The largest value of the neighbours, column by column, of x (columns, width); 0 without
    neighbours. Of equal values the one of the least vertex has the gradient. Make `adjacency` with
    unique=True where an edge may be there several times. Weights do not count."""
    return _Max.apply(adjacency, x)


def gat(adjacency, values, source, target, slope=0.2, dropout=0.0):
    """Graph attention: of values (vertices, heads, width) and scores source, target (vertices,
    heads), the sums of the neighbours' values times softmax(LeakyReLU(source + target)).
    `dropout`: the share of the attention that is dropped, by a seed that torch draws."""
    return _Attention.apply(adjacency, values, source, target, float(slope), float(dropout))


def patch(model, features=None):
    """Make the GCNConv, SAGEConv, GINConv and GATConv of a model of PyTorch Geometric use
    Starling's kernels, and return how many there are. Weights and the model's interface stay. A
    call that the kernels do not serve goes PyTorch Geometric's way (docs/PYTHON.md).

    features: a tensor (vertices, columns) that the model reads and that nobody changes. Where at
    most a tenth of it is not 0, products with weights pass over the zeros."""
    from . import _layers
    return _layers.patch(model, features)


def unpatch(model):
    """Give the layers of a patched model back to PyTorch Geometric; return how many there were."""
    from . import _layers
    return _layers.unpatch(model)
