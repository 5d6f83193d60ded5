"""starling.torch against PyTorch Geometric's own layers."""
import copy
import gc

import pytest

torch = pytest.importorskip("torch")
nn = pytest.importorskip("torch_geometric.nn")
import starling.torch as st  # noqa: E402

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
    for a, b in zip(one, other, strict=True):
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


def test_the_kernels_are_used(monkeypatch):
    edge_index, x, _ = make_graph()
    model = nn.GAT(COLUMNS, 6, 2, CLASSES, heads=2)
    st.patch(model)
    used = []
    monkeypatch.setattr(st, "gat", lambda *a, _gat=st.gat: used.append(1) or _gat(*a))
    model(x, edge_index)
    assert len(used) == 2
    st.unpatch(model)
    model(x, edge_index)
    assert len(used) == 2


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
    one.sum().backward()
    assert torch.isfinite(model.lin.weight.grad).all()
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
    for wrong in x.double(), x[:-1]:
        with pytest.raises(ValueError, match="expected 210 rows of float32"):
            st.spmm(adjacency, wrong)


def test_memory_of_passes_is_freed():
    edge_index, x, labels = make_graph()
    model = nn.GAT(COLUMNS, 64, 2, CLASSES, heads=8)
    st.patch(model)
    counts = []
    for _ in range(3):
        loss_and_gradients(model, x, edge_index, labels)
        gc.collect()
        counts.append(sum(isinstance(o, st.Handle) for o in gc.get_objects()))
    assert counts[0] == counts[1] == counts[2]
