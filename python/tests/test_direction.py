"""One directed graph through all doors: of an edge u -> v, v aggregates from u."""
import gzip
import json
import os
import subprocess

import numpy as np
import pytest

import starling

PROGRAM = os.environ.get("STARLING", "starling")
N = 14


def make_edges():
    """Sources and targets; some edges go both ways, most do not, and vertex 0 has none to it."""
    random = np.random.default_rng(3)
    edge = random.random((N, N)) < 0.25
    np.fill_diagonal(edge, False)
    edge[:, 0] = False
    edge[0, N - 1] = edge[N - 1, 1] = True
    assert (edge != edge.T).sum() > N
    return np.nonzero(edge)


SOURCE, TARGET = make_edges()
X = np.random.default_rng(4).standard_normal((N, 5)).astype(np.float32)
LABELS = np.arange(N) % 3
TRAIN = {"train": np.arange(N)}


def rows():
    """The adjacency as starling.Graph takes it: row v has the sources of edges to v."""
    order = np.lexsort((SOURCE, TARGET))
    return np.append(0, np.cumsum(np.bincount(TARGET, minlength=N))), SOURCE[order]


def of_rows():
    return starling.Graph(*rows(), X, LABELS, TRAIN)


@pytest.fixture(name="model", scope="module")
def make_model():
    return starling.train(of_rows(), model="sage", aggregator="mean", epochs=3, dropout=0,
                          hidden=6, normalize_features="none")


def reference(weights, source=SOURCE, target=TARGET):
    """GraphSAGE with means, edge by edge."""
    h = X.astype(np.float64)
    for layer in range(2):
        total, count = np.zeros_like(h), np.zeros((N, 1))
        np.add.at(total, target, h[source])
        np.add.at(count, target, 1)
        w = {name: weights[f"layer.{layer}.{name}"] for name in
             ("lin_l.weight", "lin_r.weight", "lin_l.bias")}
        h = (total / np.maximum(count, 1) @ w["lin_l.weight"] + h @ w["lin_r.weight"] +
             w["lin_l.bias"].ravel())
        h = np.maximum(h, 0) if layer == 0 else h
    return h


def expect(model, graph, **ends):
    np.testing.assert_allclose(model.predict(graph).logits, reference(model.weights, **ends),
                               rtol=1e-4, atol=1e-5)


def attach(folder):
    """The vertices' arrays, beside a converted graph."""
    np.save(folder / "features.npy", X)
    np.save(folder / "labels.npy", LABELS)
    np.save(folder / "train_idx.npy", np.arange(N))
    (folder / "meta.json").write_text("{}")
    return starling.Graph.open(folder)


def converted(path, *options):
    folder = path.parent / "converted"
    done = subprocess.run([PROGRAM, "convert", path, folder, "--quiet", *options],
                          stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return attach(folder)


def pairs(separator, first=0):
    return "".join(f"{u + first}{separator}{v + first}\n" for u, v in zip(SOURCE, TARGET))


def csr():
    """SciPy's members of A, in which entry (u, v) is the edge u -> v."""
    order = np.lexsort((TARGET, SOURCE))
    return {"indptr": np.append(0, np.cumsum(np.bincount(SOURCE, minlength=N))),
            "indices": TARGET[order].astype(np.int32), "data": np.ones(len(SOURCE)),
            "shape": np.array([N, N])}


def write_edges(path):
    path.write_text("# source target\n" + pairs(" "))


def write_csv(path):
    path.write_text("target,source\n" + "".join(f"{v},{u}\n" for u, v in zip(SOURCE, TARGET)))


def write_matrix_market(path):
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n"
                    f"{N} {N} {len(SOURCE)}\n" + pairs(" ", 1))


def write_csr(path):
    np.savez(path, format=np.bytes_("csr"), **csr())


def write_csc(path):
    indptr, indices = rows()
    np.savez(path, format=np.bytes_("csc"), **{**csr(), "indptr": indptr, "indices": indices})


def write_coo(path):
    np.savez(path, format=np.bytes_("coo"), row=SOURCE, col=TARGET, data=np.ones(len(SOURCE)),
             shape=np.array([N, N]))


def write_benchmark(path):
    np.savez(path, **{"adj_" + name: array for name, array in csr().items()})


def write_heterophilous(path):
    np.savez(path, node_features=X, node_labels=LABELS, edges=np.stack([SOURCE, TARGET], 1))


def write_matlab(path):
    sparse, io = pytest.importorskip("scipy.sparse"), pytest.importorskip("scipy.io")
    io.savemat(path, {"A": sparse.coo_matrix((np.ones(len(SOURCE)), (SOURCE, TARGET)), (N, N))})


@pytest.mark.parametrize("name, write", [
    ("edges.txt", write_edges), ("edges.csv", write_csv), ("a.mtx", write_matrix_market),
    ("csr.npz", write_csr), ("csc.npz", write_csc), ("coo.npz", write_coo),
    ("adj.npz", write_benchmark), ("some_directed.npz", write_heterophilous),
    ("a.mat", write_matlab)])
def test_files(model, tmp_path, name, write):
    write(tmp_path / name)
    expect(model, converted(tmp_path / name))


def write_tables(folder):
    (folder / "edges.csv").write_text("source,target\n" + pairs(","))
    (folder / "nodes.csv").write_text("id,label\n" + "".join(f"{v},{v % 3}\n" for v in range(N)))


def write_ogb(folder):
    (folder / "raw").mkdir()
    for name, text in {"edge": pairs(","), "num-node-list": f"{N}\n",
                       "num-edge-list": f"{len(SOURCE)}\n"}.items():
        with gzip.open(folder / "raw" / (name + ".csv.gz"), "wt") as file:
            file.write(text)


def write_ogb_arrays(folder):
    (folder / "raw").mkdir()
    np.savez(folder / "raw" / "data.npz", edge_index=np.stack([SOURCE, TARGET]),
             num_nodes_list=np.array([N]), num_edges_list=np.array([len(SOURCE)]))
    np.savez(folder / "raw" / "node-label.npz", node_label=LABELS[:, None])


def write_graphsaint(folder):
    write_csr(folder / "adj_full.npz")
    np.save(folder / "feats.npy", X)
    (folder / "class_map.json").write_text(json.dumps({str(v): v % 3 for v in range(N)}))
    (folder / "role.json").write_text(json.dumps({"tr": list(range(N)), "va": [], "te": []}))


@pytest.mark.parametrize("write", [write_tables, write_ogb, write_ogb_arrays, write_graphsaint])
def test_folders(model, tmp_path, write):
    (tmp_path / "data").mkdir()
    write(tmp_path / "data")
    expect(model, converted(tmp_path / "data"))


@pytest.mark.parametrize("name", ["saved", "saved.txt", "saved.mtx", "saved.npz"])
def test_saved(model, tmp_path, name):
    of_rows().save(tmp_path / name)
    expect(model, converted(tmp_path / name))
    (tmp_path / "again").mkdir()
    subprocess.run([PROGRAM, "convert", tmp_path / name, tmp_path / "again", "--reverse",
                    "--quiet"], check=True)
    expect(model, attach(tmp_path / "again"), source=TARGET, target=SOURCE)


def test_arrays(model):
    expect(model, of_rows())


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_scipy(model, form):
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.coo_matrix((np.ones(len(SOURCE)), (SOURCE, TARGET)), (N, N)).asformat(form)
    expect(model, starling.from_scipy(a, X, LABELS, TRAIN))
    expect(model, starling.from_scipy(a.T, X, LABELS, TRAIN), source=TARGET, target=SOURCE)


def test_networkx(model):
    networkx = pytest.importorskip("networkx")
    g = networkx.DiGraph()
    g.add_nodes_from(range(N))
    g.add_edges_from(zip(SOURCE.tolist(), TARGET.tolist()))
    expect(model, starling.from_networkx(g, X, LABELS, TRAIN))
    pytest.importorskip("scipy.sparse")
    expect(model, starling.from_scipy(networkx.to_scipy_sparse_array(g), X, LABELS, TRAIN))


def test_pyg(model):
    nn = pytest.importorskip("torch_geometric.nn")
    import torch
    from torch_geometric.data import Data
    from torch_geometric.utils import from_scipy_sparse_matrix
    edges = torch.tensor(np.stack([SOURCE, TARGET]))
    graph = starling.from_pyg(Data(x=torch.tensor(X), y=torch.tensor(LABELS), edge_index=edges))
    expect(model, graph)
    net = nn.GraphSAGE(5, 6, 2, 3)
    for layer, conv in enumerate(net.convs):
        for name, parameter in conv.named_parameters():
            stored = model.weights[f"layer.{layer}.{name}"]
            parameter.data = torch.tensor(stored.T if name.endswith("weight") else stored.ravel())
    logits = net(torch.tensor(X), edges).detach().numpy()
    np.testing.assert_allclose(model.predict(graph).logits, logits, rtol=1e-4, atol=1e-5)
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.coo_matrix((np.ones(len(SOURCE)), (SOURCE, TARGET)), (N, N))
    theirs = net(torch.tensor(X), from_scipy_sparse_matrix(a)[0]).detach().numpy()
    ours = model.predict(starling.from_scipy(a, X, LABELS, TRAIN)).logits
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_dgl(model):
    dgl = pytest.importorskip("dgl")
    import torch
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.coo_matrix((np.ones(len(SOURCE)), (SOURCE, TARGET)), (N, N))
    for g in dgl.graph((SOURCE, TARGET), num_nodes=N), dgl.from_scipy(a):
        g.ndata["feat"], g.ndata["label"] = torch.tensor(X), torch.tensor(LABELS)
        expect(model, starling.from_dgl(g))
        g.update_all(dgl.function.copy_u("feat", "m"), dgl.function.mean("m", "mean"))
        mean = g.ndata["mean"].numpy()
        total = np.zeros((N, 5))
        np.add.at(total, TARGET, X[SOURCE])
        np.testing.assert_allclose(mean, total / np.maximum(np.bincount(TARGET, minlength=N), 1)[
            :, None], rtol=1e-5, atol=1e-6)
