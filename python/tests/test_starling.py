"""The package against the C library's own promises, NumPy, and PyTorch Geometric where it is."""
import gc
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import starling

PROGRAM = os.environ.get("STARLING", "starling")


def make_arrays(n=90, classes=3, features=12, seed=1):
    """An undirected random graph with features that tell a little of the class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n).astype(np.int32)
    edge = np.triu(random.random((n, n)) < 0.02 + 0.1 * (labels[:, None] == labels), 1)
    edge |= edge.T
    indptr = np.append(0, np.cumsum(edge.sum(1))).astype(np.int64)
    indices = np.nonzero(edge)[1].astype(np.int32)
    x = random.standard_normal((n, features)).astype(np.float32)
    x[np.arange(n), labels] += 1.0
    part = random.integers(0, 3, n)
    masks = {name: part == p for p, name in enumerate(("train", "val", "test"))}
    return indptr, indices, x, labels, masks


def losses_of(graph, **options):
    losses = []
    starling.train(graph, callback=lambda e: losses.append(e.loss), **options)
    return losses


def test_trains():
    indptr, indices, x, labels, masks = make_arrays()
    graph = starling.Graph(indptr, indices, x, labels, masks)
    assert (graph.vertices, graph.entries) == (90, len(indices))
    assert (graph.features, graph.classes) == (12, 3)
    epochs = []
    model = starling.train(graph, model="gcn", callback=epochs.append, epochs=30, hidden=8)
    assert [e.epoch for e in epochs] == list(range(1, 31))
    assert epochs[-1].loss < epochs[0].loss and model.result.epochs == 30
    assert model.weights["layer.0.weight"].shape == (12, 8)
    assert model.description["configuration"]["hidden"] == 8
    prediction = model.predict(graph, embeddings=True)
    assert prediction.logits.shape == (90, 3) and prediction.embeddings.shape == (90, 8)
    odds = np.exp(prediction.logits - prediction.logits.max(1, keepdims=True))
    np.testing.assert_allclose(prediction.probabilities, odds / odds.sum(1, keepdims=True),
                               rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(prediction.classes, prediction.logits.argmax(1))
    right = prediction.classes == labels
    assert abs(right[masks["test"]].mean() - model.result.test_accuracy) < 1e-12


@pytest.mark.parametrize("keep", ["best", "last"])
def test_result_is_of_the_kept_weights(keep, tmp_path):
    indptr, indices, x, labels, masks = make_arrays()
    graph = starling.Graph(indptr, indices, x, labels, masks)
    epochs = []
    model = starling.train(graph, callback=epochs.append, epochs=30, hidden=8, eval_every=1,
                           keep=keep)
    values = [e.val_accuracy for e in epochs]
    best = 1 + values.index(max(values))
    assert 1 < best < 30 and model.result.best_epoch == best
    kept = epochs[(best if keep == "best" else 30) - 1]
    assert model.result.kept_epoch == kept.epoch
    assert model.result.loss == pytest.approx(kept.loss, rel=1e-12)
    assert model.result.val_accuracy == kept.val_accuracy
    right = model.predict(graph).classes == labels
    for split in "val", "test":
        shown = getattr(model.result, split + "_accuracy")
        assert shown == getattr(kept, split + "_accuracy")
        assert abs(right[masks[split]].mean() - shown) < 1e-12
    model.save(tmp_path / "model")
    loaded = starling.load(tmp_path / "model")
    assert loaded.result.kept_epoch == kept.epoch and loaded.result.best_epoch == best
    np.testing.assert_array_equal(loaded.weights["layer.0.weight"], model.weights["layer.0.weight"])
    np.testing.assert_array_equal(loaded.predict(graph).classes, model.predict(graph).classes)


@pytest.mark.parametrize("epochs, stop, every", [(4, 4, 3), (4, 4, 10), (9, 3, 5), (9, 8, 5)])
def test_a_loaded_result_has_the_same_epochs(epochs, stop, every, tmp_path):
    model = starling.train(starling.Graph(*make_arrays()), epochs=epochs, stop_after=stop, metric="loss",
                           eval_every=every, keep="best")
    model.save(tmp_path / "model")
    loaded = starling.load(tmp_path / "model").result
    for name in "epochs", "best_epoch", "kept_epoch":
        assert getattr(loaded, name) == getattr(model.result, name), name
    assert model.result.best_epoch == (stop if epochs == stop else stop // every * every)


def test_a_checkpoint_on_the_way_keeps_the_best_weights(tmp_path):
    indptr, indices, x, labels, masks = make_arrays()
    graph = starling.Graph(indptr, indices, x, labels, masks)
    epochs = []

    def callback(epoch):  # after the file of the epoch before
        epochs.append(epoch)
        if epoch.epoch % 4 == 1 and epoch.epoch > 4:
            shutil.copy(tmp_path / "way", tmp_path / str(epoch.epoch - 1))

    starling.train(graph, callback=callback, epochs=41, hidden=8, eval_every=3, metric="loss",
                   keep="best", checkpoint=tmp_path / "way", checkpoint_every=4)
    between = 0
    for saved in range(4, 41, 4):
        last, seen = epochs[saved - 1], [e for e in epochs[:saved] if e.epoch % 3 == 0]
        kept = min(seen + [last], key=lambda e: e.val_score)
        model = starling.load(tmp_path / str(saved))
        assert (model.result.epochs, model.result.kept_epoch) == (saved, kept.epoch)
        assert model.result.best_epoch == kept.epoch
        right = model.predict(graph).classes == labels
        assert abs(right[masks["val"]].mean() - kept.val_accuracy) < 1e-12
        between += kept is last and saved % 3 > 0
    assert between > 1


def test_example():
    graph = starling.Graph.open(starling.example("karate"))
    assert starling.train(graph, epochs=2).result.epochs == 2
    with pytest.raises(FileNotFoundError, match="no example 'nowhere'"):
        starling.example("nowhere")


@pytest.mark.parametrize("options, linear", [
    (dict(model="gcn", encoder="linear", residual="linear", classifier="linear"),
     {"layer.0.weight", "layer.1.residual.weight", "layer.2.residual.weight", "layer.3.weight"}),
    (dict(model="sage"), {f"layer.{l}.lin_{end}.weight" for l in range(2) for end in "lr"}),
    (dict(model="gin"), {"layer.1.weight", "layer.3.weight"}),
    (dict(model="gat", residual="linear", classifier="linear", heads=2),
     {"layer.0.res.weight", "layer.1.res.weight", "layer.2.weight"}),
    (dict(model="transformer", heads=2, classifier="linear"),
     {f"layer.{l}.lin_{m}.weight" for l in range(2) for m in ("key", "value", "query", "skip")} |
     {"layer.2.weight"}),
    (dict(model="gcn", jump="concat"), {"layer.2.weight"})])
def test_first_values(options, linear):
    """--linear-init pytorch: uniform(-1 / sqrt(in), 1 / sqrt(in)), and Glorot's for other layers."""
    indptr, indices, x, labels, masks = make_arrays()
    graph = starling.Graph(indptr, indices, x, labels, masks)

    def weights(init):
        return starling.train(graph, epochs=1, lr=1e-20, hidden=40, bias=True, linear_init=init,
                              weight_decay=0, **options).weights
    ours, glorot = weights("pytorch"), weights("glorot")
    for name, w in ours.items():
        if name in linear:
            bound = 1 / np.sqrt(w.shape[0])
            assert 0.8 * bound < np.abs(w).max() <= bound * (1 + 1e-6) and w.min() < 0 < w.max()
            biases = [b for b in ours if b.startswith(name[:8]) and b.endswith("bias")]
            assert biases
            for bias in biases:
                assert 0 < np.abs(ours[bias]).max() <= bound * (1 + 1e-6)
        elif name.endswith("weight"):
            assert (w == glorot[name]).all()
            bound = np.sqrt(6 / sum(w.shape))
            assert np.abs(w).max() > 0.8 * bound
    assert all(np.abs(w).max() < 1e-15 for n, w in glorot.items() if n.endswith("bias"))


def test_borrows():
    arrays = make_arrays()
    graph = starling.Graph(*arrays)
    indptr, indices, x, labels, masks = arrays
    kept = {id(array) for array in graph._arrays}
    assert kept == {id(a) for a in (indptr, indices, x, labels, *masks.values())}


def test_other_types_give_the_same_bits():
    indptr, indices, x, labels, masks = make_arrays()
    one = losses_of(starling.Graph(indptr, indices, x, labels, masks), epochs=5)
    numbers = {name: np.flatnonzero(mask) for name, mask in masks.items()}
    two = losses_of(starling.Graph(indptr.astype(np.int32), indices.astype(np.int64),
                                   np.asfortranarray(x, np.float64), labels.astype(np.int64),
                                   numbers, np.ones(len(indices))), epochs=5)
    assert one == two and len(one) == 5


def test_same_losses_as_the_program(tmp_path):
    indptr, indices, x, labels, masks = make_arrays()
    for name, array in {"indptr": indptr, "indices": indices, "features": x, "labels": labels,
                        **{s + "_idx": np.flatnonzero(m) for s, m in masks.items()}}.items():
        np.save(tmp_path / (name + ".npy"), array)
    (tmp_path / "meta.json").write_text("{}")
    ours = losses_of(starling.Graph(indptr, indices, x, labels, masks), model="sage", epochs=10,
                     dropout=0.25)
    subprocess.run([PROGRAM, "train", tmp_path, "--model", "sage", "--epochs", "10", "--dropout",
                    "0.25", "--log", tmp_path / "log", "--quiet"], check=True)
    with open(tmp_path / "log") as log:
        events = [json.loads(line) for line in log]
    assert ours == [e["loss"] for e in events if e["event"] == "epoch"] and len(ours) == 10
    assert losses_of(starling.Graph.open(tmp_path), model="sage", epochs=10, dropout=0.25) == ours


def test_mostly_zero_features_are_sparse(tmp_path):
    scipy = pytest.importorskip("scipy.sparse")
    indptr, indices, _, labels, masks = make_arrays()
    x = np.zeros((90, 40), np.float32)
    x[np.arange(90), labels * 13 + np.arange(90) % 7] = 2.0
    x[np.arange(90), np.arange(90) % 5] += 1.0
    dense = starling.Graph(indptr, indices, x, labels, masks)
    sparse = starling.Graph(indptr, indices, scipy.csr_matrix(x), labels, masks)
    assert dense.features == 40
    models = [starling.train(graph, epochs=10) for graph in (dense, sparse)]
    assert losses_of(dense, epochs=10) == losses_of(sparse, epochs=10)
    for model in models:
        assert model.description["configuration"]["normalize-features"] == "l2"
        for graph in (dense, sparse):
            np.testing.assert_array_equal(model.predict(graph).logits,
                                          models[0].predict(dense).logits)
    for name, array in {"indptr": indptr, "indices": indices, "features": x, "labels": labels,
                        **{s + "_idx": np.flatnonzero(m) for s, m in masks.items()}}.items():
        np.save(tmp_path / (name + ".npy"), array)
    (tmp_path / "meta.json").write_text("{}")
    assert losses_of(starling.Graph.open(tmp_path), epochs=10) == losses_of(dense, epochs=10)
    said = subprocess.run([sys.executable, "-c", "import sys, starling; starling.train("
                           "starling.Graph.open(sys.argv[1]), epochs=1, quiet='no')", tmp_path],
                          check=True, capture_output=True, text=True).stderr
    assert said.count("of the dense features are not 0: they count as CSR") == 1


def test_weights_outlive_and_change():
    graph = starling.Graph(*make_arrays())
    model = starling.train(graph, epochs=5)
    before = model.predict(graph).logits.copy()
    weights = model.weights
    weights["layer.0.weight"] = weights["layer.0.weight"] * 2
    after = model.predict(graph).logits
    assert not np.array_equal(before, after)
    del model
    gc.collect()
    assert np.isfinite(weights["layer.0.weight"]).all() and np.isfinite(after).all()


def test_files(tmp_path):
    graph = starling.Graph(*make_arrays())
    model = starling.train(graph, epochs=5)
    model.save(tmp_path / "ck")
    read = starling.load(tmp_path / "ck")
    np.testing.assert_array_equal(model.predict(graph).logits, read.predict(graph).logits)
    assert read.result.epochs == 5


def test_refuses(tmp_path):
    indptr, indices, x, labels, masks = make_arrays()
    graph = starling.Graph(indptr, indices, x, labels, masks)
    with pytest.raises(starling.Error, match="--hidden"):
        starling.train(graph, hiden=3)
    with pytest.raises(starling.Error, match="--lr"):
        starling.train(graph, lr="fast")
    with pytest.raises(starling.Error, match="absent"):
        starling.load(tmp_path / "absent")
    with pytest.raises(starling.Error, match="absent"):
        starling.Graph.open(tmp_path / "absent")
    with pytest.raises(ValueError, match="features"):
        starling.Graph(indptr, indices, x[1:], labels, masks)
    wild = indices.copy()
    wild[5] = 90
    with pytest.raises(starling.Error, match="column 90"):
        starling.train(starling.Graph(indptr, wild, x, labels, masks))
    with pytest.raises(starling.Error, match="training"):
        starling.train(starling.Graph(indptr, indices, x, labels))


def test_callback_raises_and_stops():
    graph = starling.Graph(*make_arrays())

    def fail(epoch):
        raise KeyError(epoch.epoch)

    with pytest.raises(KeyError):
        starling.train(graph, callback=fail, epochs=10)
    model = starling.train(graph, callback=lambda e: e.epoch == 3, epochs=100000)
    assert model.result.stopped and model.result.epochs < 100


def test_several_labels_and_numbers():
    indptr, indices, x, labels, masks = make_arrays()
    several = (x[:, :4] > 0).astype(np.float32)
    prediction = starling.train(starling.Graph(indptr, indices, x, several, masks),
                                epochs=5).predict(starling.Graph(indptr, indices, x))
    assert prediction.classes.shape == (90, 4)
    np.testing.assert_allclose(prediction.probabilities, 1 / (1 + np.exp(-prediction.logits)),
                               rtol=1e-5)
    graph = starling.Graph(indptr, indices, x, x[:, :1], masks, numbers=True)
    prediction = starling.train(graph, epochs=5).predict(graph)
    assert prediction.classes is None and prediction.probabilities is None
    assert prediction.logits.shape == (90, 1)


def cross_entropy(logits, labels, _vertices):
    odds = np.exp(logits - logits.max(1, keepdims=True))
    odds /= odds.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(odds[rows, labels])
    odds[rows, labels] -= 1
    return loss, odds


def test_own_loss():
    arrays = make_arrays()
    graph = starling.Graph(*arrays)
    expected = losses_of(graph, epochs=20, dropout=0)
    np.testing.assert_allclose(losses_of(graph, loss=cross_entropy, epochs=20, dropout=0), expected,
                               rtol=1e-4)
    labels, train = arrays[3], arrays[4]["train"]
    seen = set()

    def look(logits, own, vertices):
        np.testing.assert_array_equal(own, labels[vertices])
        seen.update(vertices.tolist())
        return cross_entropy(logits, own, vertices)

    model = starling.train(graph, loss=look, epochs=3, eval_every=-1)
    assert seen == set(np.flatnonzero(train).tolist())
    assert model.description["configuration"]["loss"] == "own-look"
    assert model.predict(graph).result.test_accuracy > 0.2 and len(seen) == 90


def test_own_losses_are_told_apart():
    graph = starling.Graph(*make_arrays())

    def name(model):
        return model.description["configuration"]["loss"]

    def scaled(factor):
        return lambda z, y, v: tuple(factor * part for part in cross_entropy(z, y, v))

    once, twice = scaled(1), scaled(2)
    first = starling.train(graph, loss=once, epochs=1)
    second = starling.train(graph, loss=twice, epochs=1)
    assert (name(first), name(second)) == ("own-lambda", "own-lambda-2")
    assert name(starling.train(graph, loss=once, epochs=1)) == "own-lambda"
    assert second.result.loss == pytest.approx(2 * first.result.loss)
    starling.register_loss("own-lambda-3", once)
    third = starling.train(graph, loss=scaled(3), epochs=1)
    assert name(third) == "own-lambda-4"
    assert third.predict(graph).result.test_accuracy >= 0  # the model keeps its function
    del second, twice
    for factor in range(20):  # more than there are names
        model = starling.train(graph, loss=scaled(factor), epochs=1)
        assert name(model) in ("own-lambda-2", "own-lambda-5")
    assert model.result.loss == pytest.approx(19 * first.result.loss)


def test_own_loss_that_is_a_method():
    class Loss:
        """A method is another object each time that it is looked up."""

        __slots__ = ("__weakref__",)

        def loss(self, z, y, v):
            return cross_entropy(z, y, v)

    class Call:
        __slots__ = ()  # no weak reference

        def __call__(self, z, y, v):
            return cross_entropy(z, y, v)

    graph, of = starling.Graph(*make_arrays()), Loss()
    models = [starling.train(graph, loss=of.loss, epochs=1) for _ in range(2)]
    del of
    models.append(starling.train(graph, loss=Call(), epochs=1))
    for model in models:
        assert model.predict(graph).result.test_accuracy >= 0
    del models[1]
    assert models[0].predict(graph).result.test_accuracy >= 0


def test_own_loss_that_is_gone(tmp_path):
    graph = starling.Graph(*make_arrays())
    starling.train(graph, loss=lambda *rows: cross_entropy(*rows), epochs=1).save(tmp_path / "m")
    model = starling.load(tmp_path / "m")
    with pytest.raises(LookupError, match="register_loss"):
        model.predict(graph)
    starling.register_loss(model.description["configuration"]["loss"], cross_entropy)
    assert model.predict(graph).result.test_accuracy >= 0


def test_own_loss_of_numbers():
    indptr, indices, x, _, masks = make_arrays()
    y = x[:, :2].copy()
    y[::7, 0] = np.nan
    graph = starling.Graph(indptr, indices, x, y, masks, numbers=True)

    def squares(logits, numbers, _vertices):
        apart = np.nan_to_num(logits - numbers)
        return (apart ** 2).mean(1), 2 * apart / apart.shape[1]

    np.testing.assert_allclose(losses_of(graph, loss=squares, epochs=10, dropout=0),
                               losses_of(graph, epochs=10, dropout=0), rtol=1e-4)


def test_own_loss_refused():
    graph = starling.Graph(*make_arrays())

    def fails(_logits, _labels, _vertices):
        raise KeyError("loss")

    with pytest.raises(KeyError):
        starling.train(graph, loss=fails, epochs=1000)
    with pytest.raises(ValueError, match=r"gradient: shape \(3,\)"):
        starling.train(graph, loss=lambda z, y, v: (np.zeros(len(z)), z[0]), epochs=1000)
    with pytest.raises(starling.Error, match="taken"):
        starling.register_loss("mse", cross_entropy)
    with pytest.raises(starling.Error, match="expected one of"):
        starling.train(graph, loss="absent")
    starling.register_loss("entropy", cross_entropy, "numbers")
    with pytest.raises(ValueError, match="labels"):
        starling.register_loss("entropy", cross_entropy, "number")
    starling.register_loss("entropy", cross_entropy)
    assert len(losses_of(graph, loss="entropy", epochs=4)) == 4


def test_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    indptr, indices, x, labels, masks = make_arrays()
    a = sparse.csr_matrix((np.ones(len(indices)), indices, indptr))
    ones = (x > 0).astype(np.float32)
    expected = losses_of(starling.Graph(indptr, indices, sparse.csr_matrix(ones), labels, masks),
                         epochs=5)
    assert losses_of(starling.from_scipy(a, sparse.csr_matrix(ones), labels, masks),
                     epochs=5) == expected
    expected = losses_of(starling.from_scipy(a, sparse.csr_matrix(ones), labels, masks),
                         epochs=5, normalize_features="none")
    dense = losses_of(starling.from_scipy(a, ones, labels, masks), epochs=5)
    np.testing.assert_allclose(dense, expected, rtol=1e-4)


def pyg_data(directed):
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    indptr, indices, x, labels, masks = make_arrays()
    target = np.repeat(np.arange(len(x)), np.diff(indptr))
    keep = np.random.default_rng(2).random(len(indices)) < (0.6 if directed else 1.1)
    edges = np.stack([indices[keep], target[keep]]).astype(np.int64)
    edges = edges[:, np.random.default_rng(3).permutation(edges.shape[1])]
    return data.Data(x=torch.tensor(x), edge_index=torch.tensor(edges),
                     y=torch.tensor(labels.astype(np.int64)),
                     **{s + "_mask": torch.tensor(m) for s, m in masks.items()})


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
def test_pyg_predicts_the_same(kind, directed):
    data = pyg_data(directed)
    import torch
    import torch_geometric.nn
    graph = starling.from_pyg(data)
    model = starling.train(graph, model=kind, hidden=8, epochs=40)
    w = {name: torch.tensor(array) for name, array in model.weights.items()}
    if kind == "gcn":
        net = torch_geometric.nn.GCN(12, 8, 2, 3)
    else:
        net = torch_geometric.nn.GraphSAGE(12, 8, 2, 3)
    for l, conv in enumerate(net.convs):
        if kind == "gcn":
            conv.lin.weight.data = w[f"layer.{l}.weight"].T
            conv.bias.data = w[f"layer.{l}.bias"].ravel()
        else:
            conv.lin_l.weight.data = w[f"layer.{l}.lin_l.weight"].T
            conv.lin_l.bias.data = w[f"layer.{l}.lin_l.bias"].ravel()
            conv.lin_r.weight.data = w[f"layer.{l}.lin_r.weight"].T
    net.eval()
    with torch.no_grad():
        theirs = net(data.x, data.edge_index).numpy()
    np.testing.assert_allclose(model.predict(graph).logits, theirs, rtol=1e-4, atol=1e-4)


def test_dgl():
    dgl = pytest.importorskip("dgl")
    data = pyg_data(True)
    g = dgl.graph((data.edge_index[0], data.edge_index[1]), num_nodes=data.num_nodes)
    g.ndata.update({"feat": data.x, "label": data.y,
                    **{s + "_mask": data[s + "_mask"] for s in ("train", "val", "test")}})
    assert losses_of(starling.from_dgl(g), epochs=5) == losses_of(starling.from_pyg(data), epochs=5)


class FakeDGL:
    """What from_dgl takes of a DGLGraph, where there is no DGL."""

    is_homogeneous, is_block = True, False

    def __init__(self, data):
        self.data = data
        self.edata = {}
        self.ndata = {"feat": data.x, "label": data.y,
                      **{s + "_mask": data[s + "_mask"] for s in ("train", "val", "test")}}

    def edges(self, order):
        assert order == "eid"
        return self.data.edge_index[0], self.data.edge_index[1]

    def num_nodes(self):
        return self.data.num_nodes


def test_what_dgl_would_give():
    data = pyg_data(True)
    assert losses_of(starling.from_dgl(FakeDGL(data)), epochs=5) == losses_of(
        starling.from_pyg(data), epochs=5)


def split_links(edges, random, share=0.2):
    """Take some undirected edges out: links, and as many pairs that are none."""
    once = edges[:, edges[0] < edges[1]]
    picked = random.permutation(once.shape[1])[:int(share * once.shape[1])]
    links = once[:, picked].T
    n, known = int(edges.max()) + 1, {tuple(e) for e in edges.T}
    others = []
    while len(others) < len(links):
        pair = tuple(int(v) for v in random.integers(0, n, 2))
        if pair[0] != pair[1] and pair not in known:
            others.append(pair)
    taken = {tuple(e) for e in links} | {tuple(e[::-1]) for e in links}
    kept = np.array([e for e in edges.T if tuple(e) not in taken]).T
    return kept, links, np.array(others)


def graph_of_links():
    indptr, indices, x, labels, masks = make_arrays()
    edges = np.stack([indices, np.repeat(np.arange(len(x)), np.diff(indptr))]).astype(np.int64)
    kept, links, others = split_links(edges, np.random.default_rng(5))
    order = np.lexsort(kept)
    indptr = np.append(0, np.cumsum(np.bincount(kept[1], minlength=len(x)))).astype(np.int64)
    return indptr, kept[0][order].astype(np.int32), x, kept, links, others


def test_links():
    indptr, indices, x, kept, links, others = graph_of_links()
    graph = starling.Graph(indptr, indices, x, links={"val": (links, others), "test": (others, links)})
    model = starling.train(graph, task="links", hidden=8, embedding=4, epochs=20)
    rows = model.predict(graph, embeddings=True).embeddings
    assert rows.shape == (90, 4)
    score = [(rows[p[:, 0]] * rows[p[:, 1]]).sum(1) for p in (links, others)]
    more = (score[0][:, None] > score[1]).mean() + 0.5 * (score[0][:, None] == score[1]).mean()
    result = starling.train(graph, task="links", hidden=8, embedding=4, epochs=20).result
    assert result.metric == "roc-auc" and abs(result.val_score - more) < 1e-6
    assert abs(result.test_score - (1 - more)) < 1e-6


def test_links_refused():
    indptr, indices, x, _, links, others = graph_of_links()
    for wrong, text in (({"val": (links, others + 90)}, "expected 0 to 89"), ({"val": (links, others[:0])}, "negatives"),
                        ({"train": (links, others)}, "split 1"), ({"all": (links, others)}, "all"),
                        ({"val": (links[:, :1], others)}, "expected")):
        with pytest.raises((starling.Error, ValueError), match=text):
            starling.Graph(indptr, indices, x, links=wrong)
    with pytest.raises(starling.Error, match="--task links"):
        starling.train(starling.Graph(indptr, indices, x), decoder="mlp", epochs=1)


def test_links_of_pyg():
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    indptr, indices, x, kept, links, others = graph_of_links()
    split = data.Data(edge_label_index=torch.tensor(np.concatenate([links, others]).T),
                      edge_label=torch.tensor([1.0] * len(links) + [0.0] * len(others)))
    whole = data.Data(x=torch.tensor(x), edge_index=torch.tensor(kept))
    ours = starling.Graph(indptr, indices, x, links={"val": (links, others)})
    theirs = starling.from_pyg(whole, links={"val": split})
    options = {"task": "links", "hidden": 8, "epochs": 5}
    assert losses_of(ours, **options) == losses_of(theirs, **options)
    assert (starling.train(ours, **options).result.val_score ==
            starling.train(theirs, **options).result.val_score)


def test_nothing_is_printed():
    script = ("import sys; sys.path[:0] = " + repr(sys.path) + "\n"
              "import test_starling as t, starling\n"
              "starling.train(starling.Graph(*t.make_arrays()), epochs=3)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          cwd=os.path.dirname(__file__), check=True)
    assert done.stdout == "" and done.stderr == ""
