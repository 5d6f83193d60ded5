"""starling.torch against PyTorch Geometric's own layers."""
import copy
import gc
import io

import numpy as np
import pytest

import starling

torch = pytest.importorskip("torch")
nn = pytest.importorskip("torch_geometric.nn")
import starling.torch as st  # noqa: E402
from starling import _layers as layers  # noqa: E402
from torch.nn.utils import prune  # noqa: E402

N, COLUMNS, CLASSES = 210, 37, 5


def make_graph(entries=3000, seed=0):
    torch.manual_seed(seed)
    return (torch.randint(0, N, (2, entries)), torch.randn(N, COLUMNS),
            torch.randint(0, CLASSES, (N,)))


MODELS = {
    "gcn": lambda: nn.GCN(COLUMNS, 24, 3, CLASSES),
    "gcn, wider": lambda: nn.GCN(COLUMNS, 64, 2, CLASSES, bias=False),
    "gcn, as it is": lambda: nn.GCN(COLUMNS, 9, 2, CLASSES, normalize=False),
    "gcn, improved": lambda: nn.GCN(COLUMNS, 9, 2, CLASSES, improved=True),
    "sage": lambda: nn.GraphSAGE(COLUMNS, 17, 3, CLASSES),
    "sage, sum": lambda: nn.GraphSAGE(COLUMNS, 64, 2, CLASSES, aggr="sum", root_weight=False),
    "sage, normalize": lambda: nn.GraphSAGE(COLUMNS, 9, 2, CLASSES, normalize=True),
    "sage, max": lambda: nn.GraphSAGE(COLUMNS, 17, 2, CLASSES, aggr="max"),
    "sage, project": lambda: nn.GraphSAGE(COLUMNS, 17, 2, CLASSES, project=True),
    "sage, several": lambda: nn.GraphSAGE(COLUMNS, 17, 2, CLASSES, aggr=["mean", "max"]),
    "gin": lambda: nn.GIN(COLUMNS, 16, 2, CLASSES, train_eps=True),
    "gat": lambda: nn.GAT(COLUMNS, 24, 2, CLASSES, heads=8),
    "gat, mean": lambda: nn.GAT(COLUMNS, 6, 2, CLASSES, heads=3, concat=False),
    "gat, residual": lambda: nn.GAT(COLUMNS, 6, 2, CLASSES, heads=2, residual=True,
                                    add_self_loops=False),
    "gat, v2": lambda: nn.GAT(COLUMNS, 6, 2, CLASSES, heads=2, v2=True),
}


def loss_and_gradients(model, x, edge_index, labels, **more):
    x = x.clone().requires_grad_()
    out = model(x, edge_index, **more)
    loss = torch.nn.functional.cross_entropy(out, labels)
    loss.backward()
    return [loss.detach(), out.detach(), x.grad] + [p.grad for p in model.parameters()]


def same(one, other, most=2e-5):
    assert len(one) == len(other)
    for a, b in zip(one, other):
        assert (a - b).abs().max() <= most * max(a.abs().max(), 1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_layers(name):
    edge_index, x, labels = make_graph()
    torch.manual_seed(1)
    theirs = MODELS[name]()
    ours = copy.deepcopy(theirs)
    expected = 0 if "v2" in name else len(ours.convs)
    assert st.patch(ours) == expected and st.patch(ours) == expected
    if name == "sage, max":
        edge_index = torch.unique(edge_index, dim=1)
    same(loss_and_gradients(theirs, x, edge_index, labels),
         loss_and_gradients(ours, x, edge_index, labels))


@pytest.fixture(name="used")
def count_kernels(monkeypatch):
    """How often layers have called each kernel."""
    counts = dict.fromkeys(("spmm", "sage_max", "gat"), 0)
    for name in counts:
        def counted(*arguments, _name=name, _kernel=getattr(st, name)):
            counts[_name] += 1
            return _kernel(*arguments)
        monkeypatch.setattr(layers, name, counted)
    return counts


@pytest.mark.parametrize("name, kernel", [
    ("gcn", "spmm"), ("sage", "spmm"), ("sage, max", "sage_max"), ("gin", "spmm"), ("gat", "gat"),
    ("sage, project", None), ("sage, several", None), ("gat, v2", None)])
def test_the_kernels_are_used(name, kernel, used):
    edge_index, x, _ = make_graph()
    model = MODELS[name]()
    st.patch(model)
    model(x, edge_index)
    assert used == {k: len(model.convs) if k == kernel else 0 for k in used}
    assert st.unpatch(model) == (0 if "v2" in name else len(model.convs))
    model(x, edge_index)
    assert sum(used.values()) == (len(model.convs) if kernel else 0)


def pair_of(make):
    theirs = make()
    ours = copy.deepcopy(theirs)
    assert st.patch(ours) == 1
    return theirs, ours


# Calls that go PyTorch Geometric's way: a layer, and what is called with (x, edge_index).
OTHERS = {
    **{f"gcn, {aggr}": (lambda aggr=aggr: nn.GCNConv(COLUMNS, 4, aggr=aggr), lambda f, x, e: f(x, e))
       for aggr in ("max", "mean", "min")},
    "gat, max": (lambda: nn.GATConv(COLUMNS, 4, aggr="max"), lambda f, x, e: f(x, e)),
    "gat, 300 heads": (lambda: nn.GATConv(COLUMNS, 1, heads=300), lambda f, x, e: f(x, e)),
    "gat, attention": (lambda: nn.GATConv(COLUMNS, 2, heads=2), lambda f, x, e: f(x, e, None, None, True)[0]),
    "gat, edge features": (lambda: nn.GATConv(COLUMNS, 2, edge_dim=3),
                           lambda f, x, e: f(x, e, torch.ones(e.size(1), 3))),
    "sage, a pair": (lambda: nn.SAGEConv(COLUMNS, 4), lambda f, x, e: f((x, x), e)),
    "sage, target to source": (lambda: nn.SAGEConv(COLUMNS, 4, flow="target_to_source"), lambda f, x, e: f(x, e)),
    "sage, node_dim": (lambda: nn.SAGEConv(N, 4, node_dim=-1), lambda f, x, e: f(x[:, :1].expand(N, N).t(), e)),
    "sage, lazy": (lambda: nn.SAGEConv(-1, 4), lambda f, x, e: f(x, e)),
    "gcn, no vertices": (lambda: nn.GCNConv(COLUMNS, 4), lambda f, x, e: f(x[:0], e[:, :0])),
    "gcn, no edges": (lambda: nn.GCNConv(COLUMNS, 4), lambda f, x, e: f(x, e[:, :0])),
    "sage, sparse": (lambda: nn.SAGEConv(COLUMNS, 4),
                     lambda f, x, e: f(x, torch.sparse_coo_tensor(e, torch.ones(e.size(1)), (N, N)).coalesce().to_sparse_csr())),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_calls(name):
    edge_index, x, _ = make_graph()
    make, call = OTHERS[name]
    torch.manual_seed(1)
    theirs, ours = (make(), None) if "lazy" in name else pair_of(make)
    if ours is None:
        ours = make()
        st.patch(ours)
        call(ours, x, edge_index)
        theirs(x, edge_index)
        theirs.load_state_dict(ours.state_dict())
    a, b = call(theirs, x, edge_index), call(ours, x, edge_index)
    assert a.shape == b.shape and torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("make", [lambda: nn.GCNConv(COLUMNS, 4), lambda: nn.SAGEConv(COLUMNS, 4),
                                  lambda: nn.GATConv(COLUMNS, 4), lambda: nn.SAGEConv(COLUMNS, 64)])
def test_surroundings(make):
    edge_index, x, _ = make_graph()
    theirs, ours = pair_of(make)
    with torch.autocast("cpu", torch.bfloat16):
        a, b = theirs(x, edge_index), ours(x, edge_index)
    assert a.dtype == b.dtype and torch.equal(a, b)
    with torch.inference_mode():
        inside = edge_index.clone()
        for _ in range(2):
            assert torch.allclose(theirs(x, inside), ours(x, inside), atol=1e-5)
            inside[0] = (inside[0] + 1) % N
    torch.set_default_dtype(torch.float64)
    try:
        a, b = theirs(x, edge_index), ours(x, edge_index)
    finally:
        torch.set_default_dtype(torch.float32)
    assert b.dtype == torch.float32 and torch.allclose(a.float(), b, atol=1e-5)
    x.requires_grad_()
    torch.func.grad(lambda v: ours(v, edge_index).sum())(x)


def test_copies_have_their_own_weights():
    edge_index, x, _ = make_graph()
    for make in (lambda: nn.SAGEConv(COLUMNS, 4, project=True), lambda: nn.GCNConv(COLUMNS, 4)):
        _, ours = pair_of(make)
        file = io.BytesIO()
        torch.save(ours, file)
        file.seek(0)
        loaded = torch.load(file)
        for other in copy.deepcopy(ours), loaded:
            assert st.patch(other) == 1
            before = ours(x, edge_index)
            for parameter in other.parameters():
                parameter.data.zero_()
            assert other(x, edge_index).abs().max() == 0 and torch.equal(ours(x, edge_index), before)


def test_hooks_of_linear_layers():
    edge_index, x, _ = make_graph()
    theirs, ours = pair_of(lambda: nn.SAGEConv(COLUMNS, 4))
    for layer in theirs, ours:
        torch.manual_seed(1)
        prune.l1_unstructured(layer.lin_l, "weight", amount=0.5)
        layer.lin_l.weight_orig.data.mul_(3)
    assert torch.allclose(theirs(x, edge_index), ours(x, edge_index), atol=1e-5)


CHANGES = {
    "a hook": lambda c: c.lin.register_forward_hook(lambda m, i, o: o.relu()),
    "a bias": lambda c: setattr(c, "lin", torch.nn.Linear(4, 8)),
    "two layers": lambda c: setattr(c, "lin", torch.nn.Sequential(torch.nn.Linear(4, 8, bias=False), torch.nn.ReLU())),
    "a message": lambda c: setattr(c, "message", lambda x_j, edge_weight: 2 * x_j),
    "an aggregation": lambda c: setattr(c, "aggr_module", nn.MaxAggregation()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_layers(name):
    edge_index, x = make_graph()[0], torch.randn(N, 4)
    theirs, ours = pair_of(lambda: nn.GCNConv(4, 8))
    for layer in theirs, ours:
        torch.manual_seed(1)
        CHANGES[name](layer)
    assert torch.allclose(theirs(x, edge_index), ours(x, edge_index), atol=1e-5)


def test_hooks_of_all_modules():
    edge_index, x, _ = make_graph()
    theirs, ours = pair_of(lambda: nn.GCNConv(COLUMNS, 4))
    seen = []
    handle = torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: seen.append(type(m)))
    try:
        theirs(x, edge_index)
        wanted = len(seen)
        ours(x, edge_index)
    finally:
        handle.remove()
    assert wanted > 1 and len(seen) == 2 * wanted


@pytest.mark.parametrize("swap", [(1, 5), (1, 998), (2, 1011), (0, 2999)])
def test_swaps(swap):
    """Places of edges and weights that change in place, by PyTorch or behind its back."""
    edge_index, x, _ = make_graph()
    weight = torch.rand(edge_index.size(1))
    theirs, ours = pair_of(lambda: nn.GCNConv(COLUMNS, 4))
    a, b = swap
    for tensor, swapped in ((weight, lambda t: t), (weight.numpy(), None), (edge_index[0], lambda t: t), (edge_index[0].numpy(), None)):
        assert torch.allclose(theirs(x, edge_index, weight), ours(x, edge_index, weight), atol=1e-5)
        tensor[[a, b]] = tensor[[b, a]]
        assert torch.allclose(theirs(x, edge_index, weight), ours(x, edge_index, weight), atol=1e-5)


def test_a_layer_that_caches():
    """The first edge_index counts, as in PyTorch Geometric, before patching or after."""
    edge_index, x, _ = make_graph()
    other = make_graph(seed=5)[0]
    for first in (lambda model: None, lambda model: model(x, other)):
        theirs = nn.GCNConv(COLUMNS, 4, cached=True)
        first(theirs)
        ours = copy.deepcopy(theirs)
        st.patch(ours)
        for e in edge_index, other, edge_index:
            assert torch.allclose(theirs(x, e), ours(x, e), atol=1e-5)


def test_arrays_that_numpy_changes():
    array = make_graph()[0].numpy().copy()
    edge_index, x = torch.from_numpy(array), make_graph()[1]
    for make in (lambda: nn.GCNConv(COLUMNS, 4), lambda: nn.GATConv(COLUMNS, 4)):
        theirs, ours = pair_of(make)
        for change in (lambda: None, lambda: array.__setitem__((0, 3), 7),
                       lambda: np.random.default_rng(0).shuffle(array[0]),
                       lambda: edge_index.data[1].copy_(edge_index.data[1].flip(0))):
            change()
            assert torch.allclose(theirs(x, edge_index), ours(x, edge_index), atol=1e-5)


def test_sparse_features():
    edge_index, x, labels = make_graph()
    x = torch.nn.functional.one_hot(torch.arange(N) % 300, 300).float() * 1.5
    for make in (lambda: nn.GCN(300, 16, 2, CLASSES), lambda: nn.GraphSAGE(300, 16, 2, CLASSES),
                 lambda: nn.GAT(300, 16, 2, CLASSES, heads=2)):
        theirs = make()
        ours = copy.deepcopy(theirs)
        st.patch(ours, features=x)
        assert layers.named
        results = []
        for model in theirs, ours:
            loss = torch.nn.functional.cross_entropy(model(x, edge_index), labels)
            loss.backward()
            results.append([loss.detach()] + [p.grad for p in model.parameters()])
        same(*results)
    x.requires_grad_()
    gradients = [torch.autograd.grad(m(x, edge_index).pow(2).sum(), x)[0] for m in (theirs, ours)]
    same(*[[g] for g in gradients])
    x.requires_grad_(False)
    x.mul_(2)  # a change that PyTorch counts
    assert torch.allclose(theirs(x, edge_index), ours(x, edge_index), atol=1e-5)
    with pytest.raises(ValueError, match="features"):
        st.patch(ours, features=x.double())


def test_edge_weights_and_changes():
    """Weights count, and an edge_index that is changed in place is read anew."""
    edge_index, x, labels = make_graph()
    weight = torch.rand(edge_index.size(1))
    theirs = nn.GCN(COLUMNS, 8, 2, CLASSES)
    ours = copy.deepcopy(theirs)
    st.patch(ours)
    for _ in range(2):
        same(loss_and_gradients(theirs, x, edge_index, labels, edge_weight=weight),
             loss_and_gradients(ours, x, edge_index, labels, edge_weight=weight))
        edge_index[0].add_(7).remainder_(N)
        weight.mul_(2).add_(1)
        theirs.zero_grad()
        ours.zero_grad()


def test_gradients_of_weights_go_the_old_way():
    edge_index, x, labels = make_graph()
    weight = torch.rand(edge_index.size(1), requires_grad=True)
    model = nn.GCN(COLUMNS, 8, 1, CLASSES)
    st.patch(model)
    loss_and_gradients(model, x, edge_index, labels, edge_weight=weight)
    assert weight.grad is not None and weight.grad.abs().max() > 0
    with pytest.raises(ValueError, match="weights"):
        st.Adjacency(edge_index, N, weight)


def test_dropout_of_attention():
    edge_index, x, _ = make_graph()
    model = nn.GATConv(COLUMNS, 6, heads=2, dropout=0.5)
    st.patch(model)
    torch.manual_seed(3)
    one = model(x, edge_index)
    other = model(x, edge_index)
    torch.manual_seed(3)
    assert (model(x, edge_index) == one).all() and (one != other).any()
    # The way back drops what the way forward dropped: the output is linear in the values.
    adjacency = st.Adjacency(edge_index, N)
    values, scores = torch.randn(N, 2, 6, requires_grad=True), torch.randn(N, 2, requires_grad=True)
    gradient = torch.randn(N, 2, 6)

    def run(scores):
        torch.manual_seed(3)
        return (st.gat(adjacency, values, scores, scores, dropout=0.5) * gradient).sum()
    loss = run(scores)
    loss.backward()
    assert (values * values.grad).sum().item() == pytest.approx(loss.item(), abs=1e-3)
    for index in (3, 0), (17, 1):
        step = torch.zeros(N, 2)
        step[index] = 1e-2
        difference = (run(scores + step) - run(scores - step)).item() / 2e-2
        assert scores.grad[index].item() == pytest.approx(difference, abs=2e-2)
    model.eval()
    assert (model(x, edge_index) == model(x, edge_index)).all()


def test_functions():
    edge_index, x, _ = make_graph(entries=500)
    edge_index = torch.unique(edge_index, dim=1)
    weights = torch.rand(edge_index.size(1))
    dense = torch.zeros(N, N)
    dense[edge_index[1], edge_index[0]] = weights
    adjacency = st.Adjacency(edge_index, N, weights)
    assert adjacency.entries == edge_index.size(1)
    y = torch.randn(N, 3, 4, requires_grad=True)
    out = st.spmm(adjacency, y)
    assert torch.allclose(out, torch.einsum("ij,jkl->ikl", dense, y), atol=1e-5)
    out.pow(2).sum().backward()
    assert torch.allclose(y.grad, 2 * torch.einsum("ij,ikl->jkl", dense, out), atol=1e-4)
    twice = st.Adjacency(torch.cat([edge_index, edge_index], 1), N, unique=True)
    assert twice.entries == edge_index.size(1)
    for wrong in x.double(), x[:-1], x[0]:
        with pytest.raises(ValueError, match=r"x: .*expected \(210.*of float32"):
            st.spmm(adjacency, wrong)
    with pytest.raises(ValueError, match="x: .*expected"):
        st.sage_max(adjacency, y)
    values, scores = torch.randn(N, 2, 3), torch.randn(N, 2)
    for wrong in ((values, scores[:, :1], scores), (values, scores, scores[:5]), (scores, scores, scores)):
        with pytest.raises(ValueError, match="expected"):
            st.gat(adjacency, *wrong)
    with pytest.raises(ValueError, match="negative weight"):
        st.gat(st.Adjacency(edge_index, N, -weights), values, scores, scores)
    for wrong in (edge_index.t(), edge_index.double(), edge_index[0], edge_index.to("meta")):
        with pytest.raises(ValueError, match="edge_index: .*expected"):
            st.Adjacency(wrong, N)
    with pytest.raises(ValueError, match="a vertex is none of"):
        st.Adjacency(torch.tensor([[N], [0]]), N, unique=True)
    with pytest.raises(starling.Error, match="sources"):
        st.Adjacency(torch.tensor([[N], [0]]), N)
    with pytest.raises(ValueError, match="weights"):
        st.Adjacency(edge_index, N, weights[:-1])
    assert torch.equal(st.spmm(adjacency, -y.detach()), -out.detach())
    assert torch.equal(st.spmm(adjacency, torch._neg_view(y.detach())), -out.detach())


def test_memory_of_passes_is_freed():
    edge_index, x, labels = make_graph()
    model = nn.GAT(COLUMNS, 64, 2, CLASSES, heads=8)
    st.patch(model)
    counts = []
    for _ in range(3):
        loss_and_gradients(model, x, edge_index, labels)
        gc.collect()
        counts.append(sum(type(o) is st.Handle for o in gc.get_objects()))
    assert counts[0] == counts[1] == counts[2]
