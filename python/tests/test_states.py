"""Weights of PyTorch Geometric and DGL: the same logits."""
import numpy as np
import pytest

import starling

torch = pytest.importorskip("torch")
N, COLUMNS, CLASSES = 120, 11, 4


@pytest.fixture(name="data")
def make_data():
    torch.manual_seed(0)
    edge_index = torch.unique(torch.randint(0, N, (2, 900)), dim=1)
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    return edge_index, torch.randn(N, COLUMNS)


def graph_of(edge_index, x):
    order = np.lexsort((edge_index[0], edge_index[1]))
    indptr = np.append(0, np.cumsum(np.bincount(edge_index[1], minlength=N)))
    return starling.Graph(indptr, edge_index[0].numpy()[order].astype(np.int32), x.numpy())


def same_logits(model, graph, expected):
    logits = model.predict(graph).logits
    expected = expected.detach().numpy()
    assert logits.shape == expected.shape
    assert np.abs(logits - expected).max() <= 1e-5 * max(1, np.abs(expected).max())


def pyg_models():
    nn = pytest.importorskip("torch_geometric.nn")

    def gin(width):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                widths = [COLUMNS, width, CLASSES]
                self.convs = torch.nn.ModuleList(nn.GINConv(torch.nn.Sequential(
                    torch.nn.Linear(widths[l], width), torch.nn.ReLU(),
                    torch.nn.Linear(width, widths[l + 1]))) for l in range(2))

            def forward(self, x, edge_index):
                return self.convs[1](self.convs[0](x, edge_index).relu(), edge_index)
        return Net()
    return {
        "gcn": (nn.GCN(COLUMNS, 16, 12, CLASSES), {}),
        "gcn, no bias": (nn.GCN(COLUMNS, 16, 1, CLASSES, bias=False), {}),
        "sage, mean": (nn.GraphSAGE(COLUMNS, 9, 3, CLASSES), {}),
        "sage, max": (nn.GraphSAGE(COLUMNS, 9, 2, CLASSES, aggr="max", act="elu"),
                      {"aggregator": "max", "activation": "elu"}),
        "gat": (nn.GAT(COLUMNS, 12, 2, CLASSES, heads=3, act="elu"), {"activation": "elu"}),
        "gat, relu": (nn.GAT(COLUMNS, 12, 3, CLASSES, heads=3), {"activation": "relu"}),
        "gin": (gin(7), {}),
    }


@pytest.mark.parametrize("name", ["gcn", "gcn, no bias", "sage, mean", "sage, max", "gat",
                                  "gat, relu", "gin"])
def test_pyg_states(name, data, tmp_path):
    theirs, options = pyg_models()[name]
    for parameter in theirs.parameters():  # biases start as 0
        parameter.data += 0.1 * torch.randn_like(parameter)
    state = {k: v for k, v in theirs.state_dict().items() if not k.endswith("eps")}
    graph, expected = graph_of(*data), theirs.eval()(data[1], data[0])
    options["layer"] = type(theirs.convs[0]).__name__
    model = starling.from_state_dict(theirs, check=(graph, expected), **options)
    same_logits(model, graph, expected)
    with pytest.raises(ValueError, match="check: logits differ by"):
        starling.from_state_dict(theirs, check=(graph, expected + 1), **options)
    torch.save(theirs.state_dict(), tmp_path / "state.pt")
    same_logits(starling.from_state_dict(tmp_path / "state.pt", **options), graph, expected)
    model.save(tmp_path / "model")
    same_logits(starling.load(tmp_path / "model"), graph, expected)
    files = pytest.importorskip("safetensors.torch")  # sorts tensors by name: convs.10 before convs.2
    files.save_file({k: v.contiguous() for k, v in state.items()},
                    tmp_path / "state.safetensors")
    same_logits(starling.from_state_dict(tmp_path / "state.safetensors", **options), graph,
                expected)


class DglNet(torch.nn.Module):
    def __init__(self, layers, between):
        super().__init__()
        self.layers, self.between = torch.nn.ModuleList(layers), between

    def forward(self, g, h):
        for l, layer in enumerate(self.layers):
            h = layer(g, h)
            last = l == len(self.layers) - 1
            if h.dim() == 3:
                h = h.mean(1) if last else h.flatten(1)
            h = h if last else self.between(h)
        return h


def dgl_models():
    nn = pytest.importorskip("dgl.nn")
    elu, relu = torch.nn.functional.elu, torch.relu

    def mlp(width, out):
        return torch.nn.Sequential(torch.nn.Linear(width, 6), torch.nn.ReLU(),
                                   torch.nn.Linear(6, out))
    return {
        "gcn": (DglNet([nn.GraphConv(COLUMNS, 8), nn.GraphConv(8, CLASSES)], relu), {}, True),
        "sage": (DglNet([nn.SAGEConv(COLUMNS, 8, "mean"), nn.SAGEConv(8, CLASSES, "mean")], relu),
                 {}, False),
        "sage, gcn": (DglNet([nn.SAGEConv(COLUMNS, 8, "gcn"), nn.SAGEConv(8, CLASSES, "gcn")], relu),
                      {}, False),
        "gat": (DglNet([nn.GATConv(COLUMNS, 5, 3), nn.GATConv(15, CLASSES, 2)], elu),
                {"activation": "elu"}, True),
        "gin": (DglNet([nn.GINConv(mlp(COLUMNS, 6), "sum"), nn.GINConv(mlp(6, CLASSES), "sum")],
                       relu), {}, False),
    }


@pytest.mark.parametrize("name", ["gcn", "sage", "sage, gcn", "gat", "gin"])
def test_dgl_states(name, data):
    dgl = pytest.importorskip("dgl")
    theirs, options, loops = dgl_models()[name]
    for parameter in theirs.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    edge_index, x = data
    if name == "gcn":  # DGL divides by degrees of both directions
        edge_index = torch.unique(torch.cat([edge_index, edge_index.flip(0)], 1), dim=1)
    g = dgl.graph((edge_index[0], edge_index[1]), num_nodes=N)
    with torch.no_grad():
        expected = theirs.eval()(dgl.add_self_loop(g) if loops else g, x)
    options["layer"] = "dgl." + type(theirs.layers[0]).__name__
    same_logits(starling.from_state_dict(theirs.state_dict(), **options),
                graph_of(edge_index, x), expected)


def zeros(*names):
    """A state of matrices of the chain 3, 4, 4, …, 2."""
    sizes = [3] + [4] * (len(names) - 1) + [2]
    return {name: torch.zeros(sizes[l + 1], sizes[l]) for l, name in enumerate(names)}


TWO = zeros("convs.0.lin.weight", "convs.1.lin.weight")


@pytest.mark.parametrize("state, layer, sentence", [
    (TWO, "Linear", "layer: 'Linear'"),
    ({}, "GCNConv", "state: no tensors"),
    (TWO, "SAGEConv", "convs.0.lin.weight is of no such layer"),
    ({**TWO, "bn.running_mean": torch.zeros(4)}, "GCNConv", "bn.running_mean is of no such layer"),
    (zeros("a.lin.weight", "b.lin.weight"), "GCNConv", r"expected names that differ in one number"),
    (zeros("c0.lin.weight", "lin.weight"), "GCNConv", r"expected names that differ in one number"),
    (zeros("a0.c0.lin.weight", "a1.c1.lin.weight"), "GCNConv", "expected names that differ in one number"),
    ({"convs.0.lin_l.weight": torch.zeros(2, 3)}, "SAGEConv", "is no SAGEConv that is known"),
    ({"lin.weight": torch.full((2, 2), float("nan"))}, "GCNConv", "no tensor of finite numbers"),
    ({"lin.weight": torch.zeros(2, 2, dtype=torch.int32)}, "GCNConv", "no tensor of finite numbers"),
    ({"lin.weight": {}}, "GCNConv", "no tensor of finite numbers"),
    ({"weight": torch.zeros(2)}, "dgl.GraphConv", "has 1 dimensions .expected 2"),
    ({"att_src": torch.zeros(1, 2, 2)}, "GATConv", "is no GATConv that is known"),
    ({**TWO, "convs.1.lin.weight": torch.zeros(2, 5)}, "GCNConv", r"expected \(4, 2\)"),
    (zeros("c.0.lin.weight", "c.1.lin.weight", "c.2.lin.weight") | {"c.1.lin.weight": torch.zeros(7, 4)},
     "GCNConv", "widths of hidden layers"),
])
def test_refusals(state, layer, sentence):
    with pytest.raises(ValueError, match=sentence):
        starling.from_state_dict(state, layer)


def test_given_order(data):
    nn = pytest.importorskip("torch_geometric.nn")
    net = torch.nn.ModuleDict({"out": nn.GCNConv(8, CLASSES), "inner": nn.GCNConv(COLUMNS, 8)})
    expected = net["out"](net["inner"](data[1], data[0]).relu(), data[0])
    model = starling.from_state_dict(net, "GCNConv", layers=["inner", "out"])
    same_logits(model, graph_of(*data), expected)
    with pytest.raises(ValueError, match="layers: "):
        starling.from_state_dict(net, "GCNConv", layers=["inner"])


def test_what_a_state_of_pyg_does_not_tell():
    nn = pytest.importorskip("torch_geometric.nn")
    for model, layer, sentence in (
            (nn.GAT(3, 4, 2, 4, heads=2, v2=True), "GATConv", "is of no such layer"),
            (nn.GATConv(3, 4, heads=2), "GATConv", "side by side"),
            (nn.GATConv(3, 4, heads=2, bias=False), "GATConv", "side by side"),
            (nn.GIN(3, 4, 2, 2), "GINConv", "widths of hidden layers")):
        with pytest.raises(ValueError, match=sentence):
            starling.from_state_dict(model, layer, activation="relu")
    for model, sentence in ((nn.GCNConv(3, 4, improved=True), "improved=True"),
                            (nn.GCNConv(3, 4, add_self_loops=False), "add_self_loops=False"),
                            (nn.GCNConv(3, 4, normalize=False), "normalize=False")):
        with pytest.raises(ValueError, match=sentence):
            starling.from_state_dict(torch.nn.ModuleDict({"conv": model}), "GCNConv")
    with pytest.raises(ValueError, match="has aggr='max'"):
        starling.from_state_dict(nn.GraphSAGE(3, 4, 2, 2, aggr="max"), "SAGEConv")
    with pytest.raises(ValueError, match="has normalize=True"):
        starling.from_state_dict(nn.GraphSAGE(3, 4, 2, 2, normalize=True), "SAGEConv")
    square = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    with pytest.raises(ValueError, match="is a Linear"):
        starling.from_state_dict(square, "dgl.GraphConv")
    with pytest.raises(ValueError, match="square matrices"):
        starling.from_state_dict(square.state_dict(), "dgl.GraphConv")
    with pytest.raises(ValueError, match="activation: missing"):
        starling.from_state_dict(nn.GATConv(3, 4), "GATConv")
    gin = nn.GIN(3, 4, 1, 4, train_eps=True)
    gin.convs[0].eps.data.fill_(0.5)
    with pytest.raises(ValueError, match="eps is 0.5"):
        starling.from_state_dict(gin, "GINConv")
