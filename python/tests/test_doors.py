"""What graphs refuse, and that the same graph means the same from wherever it comes."""
import contextlib
import copy
import os
import pickle
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import starling
from starling._arrays import take_classes
from test_starling import FakeDGL, make_arrays, pyg_data

PROGRAM = os.environ.get("STARLING", "starling")


def make(**changes):
    indptr, indices, x, labels, masks = make_arrays()
    arguments = dict(indptr=indptr, indices=indices, features=x, labels=labels, masks=masks)
    return starling.Graph(**{**arguments, **changes})


def changed(array, at, value, kind):
    array = array.astype(kind)
    array[at] = value
    return array


def test_casts():
    indptr, indices, x, labels, masks = make_arrays()
    far = np.int64(1) << 40
    with pytest.raises(ValueError, match=r"indices: item 5 is 0\.5, expected an integer"):
        make(indices=changed(indices, 5, 0.5, float))
    with pytest.raises(ValueError, match=f"indices: item 5 is {far}, expected an integer"):
        make(indices=changed(indices, 5, far, np.int64))
    with pytest.raises(ValueError, match="indices: item 5 is nan"):
        make(indices=changed(indices, 5, np.nan, float))
    with pytest.raises(ValueError, match="indptr: item 0 is 18446744073709551615"):
        make(indptr=changed(indptr, 0, np.uint64(2 ** 64 - 1), np.uint64))
    with pytest.raises(ValueError, match=r"features: row 3, column 2 is 1e\+300"):
        make(features=changed(x, (3, 2), 1e300, float))
    with pytest.raises(TypeError, match="features: items are complex128"):
        make(features=x.astype(complex))
    with pytest.raises(TypeError, match="labels: items are <U3"):
        make(labels=np.full(90, "abc"))
    with pytest.raises(ValueError, match=f"labels: item 7 is {far}"):
        make(labels=changed(labels, 7, far, np.int64))
    with pytest.raises(ValueError, match=r"train: item 1 is 2\.5"):
        make(masks={"train": [0.0, 2.5]})
    with pytest.raises(ValueError, match="duplicates"):
        make(duplicates="two")


def test_shapes():
    indptr, indices, x, labels, masks = make_arrays()
    with pytest.raises(ValueError, match=r"features: shape \(89, 12\), expected \(90, any\)"):
        make(features=x[1:])
    with pytest.raises(ValueError, match=r"features: shape \(90,\)"):
        make(features=x[:, 0])
    with pytest.raises(ValueError, match=r"labels: shape \(89,\), expected \(90,\)"):
        make(labels=labels[1:])
    with pytest.raises(ValueError, match=r"train: shape \(89,\)"):
        make(masks={"train": masks["train"][1:]})
    with pytest.raises(ValueError, match="weights: shape"):
        make(weights=np.ones(len(indices) - 1))
    with pytest.raises(ValueError, match=r"indices: shape \(1, "):
        make(indices=indices[None])
    with pytest.raises(starling.Error, match="training vertices.*mask"):  # integers are vertices
        starling.train(make(masks={"train": masks["train"].astype(int)}))


def test_sparse_features():
    sparse = pytest.importorskip("scipy.sparse")
    x = sparse.csr_matrix(np.eye(90, 12, dtype=np.float32))
    with pytest.raises(ValueError, match=r"features: shape \(10, 12\), expected \(90, any\)"):
        make(features=x[:10])
    wrong = x.copy()
    wrong.indptr = x.indptr[:50]
    with pytest.raises(ValueError, match="features: indptr: shape"):
        make(features=wrong)
    wrong.indptr = x.indptr + 5
    with pytest.raises(ValueError, match="features: indptr ends at 17, expected at most 12"):
        make(features=wrong)
    roomy = x.copy()
    roomy.indices, roomy.data = np.append(x.indices, [7, 7]), np.append(x.data, [9, 9])
    assert losses(make(features=roomy)) == losses(make(features=x)) == losses(make(
        features=sparse.coo_matrix(x)))


def losses(graph, **options):
    found = []
    starling.train(graph, callback=lambda e: found.append(e.loss),
                   **{"epochs": 3, "workers": 1, **options})
    return found


def test_labels():
    _, _, x, labels, _ = make_arrays()
    numbers = np.linspace(0.1, 4.9, 90)
    with pytest.raises(ValueError, match=r"labels: item 0 is 0\.1, expected a class; numbers"):
        make(labels=numbers)
    with pytest.raises(ValueError, match=r"labels: row 0, column 0 is 0\.1, expected 0 or 1"):
        make(labels=numbers[:, None])
    with pytest.raises(ValueError, match="labels: 3001 different floats.*numbers=True"):
        take_classes(np.arange(6002) % 3001 * 1.0, "labels", 6002)
    assert (take_classes(np.arange(6000) % 100 * 1.0, "labels", 6000) == np.arange(6000) % 100).all()
    model = starling.train(make(labels=numbers, numbers=True), epochs=1)
    assert model.description["configuration"]["loss"] == "mse"
    some = labels.astype(float)
    some[:5] = np.nan
    none = labels.copy()
    none[:5] = -1
    assert losses(make(labels=some)) == losses(make(labels=none))
    assert losses(make(labels=labels[:, None])) == losses(make(labels=labels))


def doubled_arrays():
    """Some edges twice or thrice: (n, source, target, weights of the merged edges)."""
    indptr, indices, x, labels, masks = make_arrays()
    target = np.repeat(np.arange(90), np.diff(indptr))
    again = np.concatenate([np.arange(len(indices)), np.arange(40), np.arange(20)])
    again = np.random.default_rng(5).permutation(again)
    return indices[again].astype(np.int64), target[again], x, labels, masks


def scipy_graphs(**options):
    """The graph of doubled_arrays from SciPy: entry (source, target)."""
    sparse = pytest.importorskip("scipy.sparse")
    source, target, x, labels, masks = doubled_arrays()
    coo = sparse.coo_matrix((np.ones(len(source)), (source, target)), (90, 90))
    order = np.argsort(source, kind="stable")
    csr = sparse.csr_matrix((np.ones(len(source)), target[order],
                             np.append(0, np.cumsum(np.bincount(source)))), (90, 90))
    csc = sparse.csc_matrix(coo.T.tocsr().T)
    matrices = (coo, csr) if options.get("duplicates") == "one" else (coo, csr, csc, coo.tocsr())
    return [starling.from_scipy(matrix, x, labels, masks, **options) for matrix in matrices]


@pytest.mark.parametrize("duplicates", ["sum", "one"])
def test_doubled_edges(duplicates, tmp_path):
    source, target, x, labels, masks = doubled_arrays()
    order = np.argsort(target, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(target)))
    graph = starling.Graph(indptr, source[order], x, labels, masks, duplicates=duplicates)
    expected = losses(graph, dropout=0)
    weights = np.ones(len(source))
    once = losses(starling.Graph(indptr, source[order], x, labels, masks, weights), dropout=0)
    assert np.allclose(once, expected, rtol=1e-6) == (duplicates == "sum")
    for other in scipy_graphs(duplicates=duplicates):
        np.testing.assert_allclose(losses(other, dropout=0), expected, rtol=1e-6)
    (tmp_path / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in zip(source, target)))
    subprocess.run([PROGRAM, "convert", tmp_path / "edges.txt", tmp_path / "file", "--duplicates",
                    duplicates, "--quiet"], check=True)
    for name, array in {"features": x, "labels": labels,
                        **{s + "_idx": np.flatnonzero(m) for s, m in masks.items()}}.items():
        np.save(tmp_path / "file" / (name + ".npy"), array)
    (tmp_path / "file" / "meta.json").write_text("{}")
    np.testing.assert_allclose(losses(starling.Graph.open(tmp_path / "file"), dropout=0), expected,
                               rtol=1e-6)


def test_doubled_edges_of_networkx():
    networkx = pytest.importorskip("networkx")
    source, target, x, labels, masks = doubled_arrays()
    g = networkx.MultiDiGraph()
    g.add_nodes_from(range(90))
    g.add_edges_from(zip(source.tolist(), target.tolist()))
    np.testing.assert_allclose(losses(starling.from_networkx(g, x, labels, masks), dropout=0),
                               losses(scipy_graphs()[0], dropout=0), rtol=1e-6)


@pytest.mark.parametrize("duplicates", ["sum", "one"])
def test_doubled_edges_of_pyg_and_dgl(duplicates):
    data = pyg_data(True)
    import torch
    source, target, *_ = doubled_arrays()
    data.edge_index = torch.tensor(np.stack([source, target]))
    expected = losses(scipy_graphs(duplicates=duplicates)[0], dropout=0)
    for graph in (starling.from_pyg(data, duplicates=duplicates),
                  starling.from_dgl(FakeDGL(data), duplicates=duplicates)):
        np.testing.assert_allclose(losses(graph, dropout=0), expected, rtol=1e-6)


def test_scipy_refuses():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ValueError, match=r"adjacency: shape \(4, 2\), expected a square"):
        starling.from_scipy(sparse.csr_matrix(np.ones((4, 2))))
    with pytest.raises(TypeError, match="adjacency: ndarray"):
        starling.from_scipy(np.eye(3))
    with pytest.raises(TypeError, match="weights: items are complex128"):
        starling.from_scipy(sparse.identity(3, dtype=complex) * 2)
    for form in "csr", "csc":
        short = sparse.identity(4, format=form)
        short.indptr = short.indptr[:3]
        with pytest.raises(ValueError, match=r"adjacency: indptr: shape \(3,\), expected \(5,\)"):
            starling.from_scipy(short)
        for wrong in [0, 1, 2, 3, 9], [0, 3, 2, 3, 4], [1, 1, 2, 3, 4]:
            short.indptr = np.array(wrong)
            with pytest.raises(ValueError, match="adjacency: indptr goes from . to ., expected 0"):
                starling.from_scipy(short, duplicates="sum")
        short = sparse.identity(4, format=form)
        short.indices = np.array([0, 1, 4, 3])
        with pytest.raises(ValueError, match="adjacency: indices: item 2 is 4, expected 0 to 3"):
            starling.from_scipy(short)
    graph = starling.from_scipy(sparse.identity(3, format="csr"), labels=[0.5, 1, 2],
                                masks={"train": [0, 1]}, numbers=True)
    assert starling.train(graph, epochs=1).description["configuration"]["loss"] == "mse"


def test_pyg_edge_features(tmp_path):
    """edge_attr of several columns; those of duplicates add up."""
    data = pyg_data(True)
    import torch
    data.edge_attr = torch.rand(data.num_edges, 3)
    plain = losses(starling.from_pyg(data, edge_features=None, weights=None), model="gat")
    assert losses(starling.from_pyg(data), model="gat") != plain
    assert losses(starling.from_pyg(data), model="gat", edge_features="none") == plain
    ends = torch.tensor([[0, 1, 0, 2], [1, 2, 1, 0]])
    data = type(data)(x=torch.rand(3, 2), edge_index=ends, num_nodes=3,
                      edge_attr=torch.tensor([[1.0, 2], [3, 4], [5, 6], [7, 8]]))
    with pytest.raises(ValueError, match="edge_attr: some edges are there twice"):
        starling.from_pyg(data)
    starling.from_pyg(data, edge_features="edge_attr").save(tmp_path / "saved")
    assert np.load(tmp_path / "saved/edge_features.npy").tolist() == [[7, 8], [6, 8], [3, 4]]
    with pytest.raises(ValueError, match="edge_features.*expected"):
        starling.Graph([0, 1, 1], [1], edge_features=[[1.0], [2.0]])


def related(edges):
    """Edges of several relations, some between the same vertices, some twice: sources, targets,
    relations, and {(target, source, relation): numbers of the edges}."""
    random = np.random.default_rng(7)
    source, target = (np.concatenate([end, end[:60], end[:30]]) for end in edges)
    relation = random.integers(0, 4, len(source))
    relation[:60] = (relation[len(edges[0]):][:60] + random.integers(1, 4, 60)) % 4
    relation[-30:] = relation[:30]
    there = {}
    for e, key in enumerate(zip(target.tolist(), source.tolist(), relation.tolist())):
        there.setdefault(key, []).append(e)
    assert len(source) > len(there) > len({key[:2] for key in there})
    return source, target, relation, there


def saved(graph, path):
    """{(row, column, relation): [features, weight]} of a graph, from its files."""
    graph.save(path)

    def read(name, usual):
        return np.load(path / (name + ".npy")) if (path / (name + ".npy")).exists() else usual

    indptr, indices, types = (np.load(path / (name + ".npy"))
                              for name in ("indptr", "indices", "edge_types"))
    features = read("edge_features", np.empty((len(indices), 0))).tolist()
    weights = read("weights", np.ones(len(indices))).tolist()
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).tolist()
    keys = list(zip(rows, indices.tolist(), types.tolist()))
    assert keys == sorted(set(keys))
    return {key: features[e] + [weights[e]] for e, key in enumerate(keys)}


def test_pyg_edge_types(tmp_path):
    """edge_type is the relation of an edge. An edge that is there twice with one relation is one."""
    data = pyg_data(True)
    import torch
    source, target, relation, there = related(data.edge_index.numpy())
    data.edge_index = torch.tensor(np.stack([source, target]))
    plain = losses(starling.from_pyg(data, duplicates="one"), dropout=0)
    data.edge_type = torch.tensor(relation)
    graph = starling.from_pyg(data)
    assert graph.entries == len(there)
    assert saved(graph, tmp_path / "types") == {key: [1.0] for key in there}
    expected = losses(graph, model="rgcn")
    assert losses(starling.Graph.open(tmp_path / "types"), model="rgcn") == expected
    assert losses(starling.from_pyg(data, edge_types="edge_type"), model="rgcn") == expected
    keys = sorted(there)  # the same from arrays
    counts = np.bincount([key[0] for key in keys], minlength=90)
    arrays = starling.Graph(np.append(0, np.cumsum(counts)), [key[1] for key in keys],
                            data.x.numpy(), data.y.numpy(),
                            {s: data[s + "_mask"].numpy() for s in ("train", "val", "test")},
                            edge_types=[key[2] for key in keys])
    assert losses(arrays, model="rgcn") == expected
    np.testing.assert_allclose(losses(graph, dropout=0), plain, rtol=1e-6)
    data.edge_type = torch.tensor((relation + (source + target) % 3) % 5)
    assert losses(starling.from_pyg(data), model="rgcn") != expected
    data.edge_type = torch.tensor(relation)

    # features and weights of edges that are merged add up
    features = torch.randint(-8, 8, (len(source), 2)) / 4
    weight = torch.randint(1, 8, (len(source),)) / 4
    data.edge_attr, data.edge_weight = features, weight
    both = {key: features[e].sum(0).tolist() + [weight[e].sum().item()]
            for key, e in there.items()}
    assert saved(starling.from_pyg(data), tmp_path / "both") == both
    assert saved(starling.from_pyg(data, weights=None), tmp_path / "features") == {
        key: numbers[:2] + [1.0] for key, numbers in both.items()}
    graph = starling.from_pyg(data, edge_features=None, weights="edge_weight")
    assert saved(graph, tmp_path / "weights") == {key: numbers[2:] for key, numbers in both.items()}
    del data.edge_attr
    with pytest.raises(starling.Error, match="weights and relations"):
        losses(starling.from_pyg(data), model="rgcn")

    # what is wrong, and what is not read
    del data.edge_weight
    with pytest.raises(starling.Error, match="have no relations"):
        losses(starling.from_pyg(data, edge_types=None, weights=None), model="rgcn")
    with pytest.raises(KeyError, match="edge_types: 'kind' is not there"):
        starling.from_pyg(data, edge_types="kind")
    for wrong, what in ((relation[1:], "edge_types: shape"),
                        (relation + 0.5, r"edge_types: item 0 is \d\.5"),
                        (relation - 1, "relation -1, expected 0 to 65535"),
                        (relation + 65533, "expected 0 to 65535")):
        data.edge_type = torch.tensor(wrong)
        with pytest.raises((ValueError, starling.Error), match=what):
            starling.from_pyg(data)
    data.edge_type = torch.zeros(data.num_edges, dtype=torch.long)
    one = starling.from_pyg(data, edge_types="edge_type")
    assert losses(one, model="rgcn")
    with pytest.raises(starling.Error, match="edge_types"):
        starling.Graph([0, 1, 1], [1], edge_types=[70000])
    with pytest.raises(ValueError, match="edge_types: shape"):
        starling.Graph([0, 1, 1], [1], edge_types=[0, 1])


def test_dgl_edge_types(tmp_path):
    """dgl.to_homogeneous leaves relations in edata."""
    data = pyg_data(True)
    import torch
    source, target, relation, there = related(data.edge_index.numpy())
    data.edge_index, data.edge_type = torch.tensor(np.stack([source, target])), torch.tensor(relation)
    expected = losses(starling.from_pyg(data), model="rgcn")
    g = FakeDGL(data)
    g.edata["_TYPE"] = data.edge_type
    assert losses(starling.from_dgl(g), model="rgcn") == expected
    assert saved(starling.from_dgl(g), tmp_path / "types") == {key: [1.0] for key in there}
    with pytest.raises(starling.Error, match="have no relations"):
        losses(starling.from_dgl(g, edge_types=None), model="rgcn")
    g.edata["kind"] = g.edata.pop("_TYPE")
    assert losses(starling.from_dgl(g, edge_types="kind"), model="rgcn") == expected


def test_heterogeneous_dgl(tmp_path):
    dgl = pytest.importorskip("dgl")
    data = pyg_data(True)
    import torch
    source, target, relation, there = related(data.edge_index.numpy())
    source, target = torch.tensor(source), torch.tensor(target)
    parts = {("v", f"r{r}", "v"): (source[relation == r], target[relation == r]) for r in range(4)}
    g = dgl.to_homogeneous(dgl.heterograph(parts, {"v": 90}))
    graph = starling.from_dgl(g, features=None, labels=None)
    assert saved(graph, tmp_path / "types") == {key: [1.0] for key in there}


def test_pyg_weights():
    data = pyg_data(True)
    import torch
    plain = losses(starling.from_pyg(data))
    w = torch.rand(data.num_edges)
    data.edge_attr = w[:, None]
    weighted = losses(starling.from_pyg(data))
    assert weighted != plain and losses(starling.from_pyg(data, weights=None)) == plain
    data.edge_weight = w
    with pytest.raises(ValueError, match="edge_attr.*edge_weight.*weights=None"):
        starling.from_pyg(data)
    assert losses(starling.from_pyg(data, weights="edge_weight")) == weighted
    del data.edge_attr
    assert losses(starling.from_pyg(data)) == weighted
    with pytest.raises(KeyError, match="weights: 'w' is not there.*edge_weight"):
        starling.from_pyg(data, weights="w")
    data.edge_weight = torch.rand(data.num_edges, 3)
    with pytest.raises(ValueError, match=r"edge_weight: shape \(\d+, 3\), expected one weight"):
        starling.from_pyg(data)
    data.edge_weight = w[1:]
    with pytest.raises(ValueError, match="weights: shape"):
        starling.from_pyg(data)
    del data.edge_weight
    data.edge_type = torch.zeros(data.num_edges, dtype=torch.long)
    assert losses(starling.from_pyg(data)) == plain


def test_pyg_hetero(tmp_path):
    """Types of vertices one after the other, with columns of their own; types of edges are relations."""
    torch = pytest.importorskip("torch")
    HeteroData = pytest.importorskip("torch_geometric.data").HeteroData
    data = HeteroData()
    data["author"].num_nodes = 3
    data["paper"].x = torch.tensor([[1.0, 0], [2, 3]])
    data["paper"].y = torch.tensor([1, 0])
    data["paper"].train_mask = torch.tensor([True, False])
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 2, 2], [1, 0, 1]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 0], [1, 1]])
    starling.from_pyg(data).save(tmp_path / "saved")
    read = {name: np.load(tmp_path / f"saved/{name}.npy").tolist()
            for name in ("indptr", "indices", "edge_types", "labels", "train_idx", "features_indptr",
                         "features_indices", "features_data")}
    assert read == {"indptr": [0, 0, 0, 0, 1, 4], "indices": [2, 0, 2, 3], "edge_types": [0, 0, 0, 1],
                    "labels": [-1, -1, -1, 1, 0], "train_idx": [3], "features_indptr": [0, 1, 2, 3, 5, 8],
                    "features_indices": [0, 1, 2, 3, 5, 3, 4, 5], "features_data": [1, 1, 1, 1, 1, 2, 3, 1]}
    losses(starling.from_pyg(data), model="rgcn", encoder="linear")
    with pytest.raises(ValueError, match="takes numbers= alone"):
        starling.from_pyg(data, labels=None)
    data["paper"].y = torch.tensor([[1], [0]], dtype=torch.uint8)  # a column of small integers
    starling.from_pyg(data).save(tmp_path / "column")
    assert np.load(tmp_path / "column/labels.npy").tolist() == [-1, -1, -1, 1, 0]
    data["paper", "cites", "paper"].edge_weight = torch.ones(2)
    with pytest.raises(ValueError, match="edge_weight.*expected edge_index alone"):
        starling.from_pyg(data)
    del data["paper", "cites", "paper"].edge_weight
    data["author", "writes", "paper"].edge_index[0, 0] = 3
    with pytest.raises(ValueError, match="writes.*edge 0 is 3 -> 1, expected 0 to 2 -> 0 to 1"):
        starling.from_pyg(data)
    data["author", "writes", "paper"].edge_index[0, 0] = 0
    data["author"].y = torch.zeros(3)
    with pytest.raises(ValueError, match="expected one type"):
        starling.from_pyg(data)


def test_pyg_refuses():
    data = pyg_data(True)
    import torch
    import torch_geometric.data
    with pytest.raises(KeyError, match="features: 'feat' is not there.*'x'"):
        starling.from_pyg(data, features="feat")
    assert starling.from_pyg(data, features=None).features == 90
    with pytest.raises(ValueError, match="HeteroData"):
        starling.from_pyg(torch_geometric.data.HeteroData())
    kept, y = data.edge_index, data.y
    data.edge_index = kept.clone()
    data.edge_index[0, 4] = 90
    with pytest.raises(ValueError, match=r"edges: edge 4 is 90 -> \d+, expected 0 to 89"):
        starling.from_pyg(data)
    data.edge_index = None
    data.adj_t = torch.eye(90).to_sparse_csr()
    with pytest.raises(ValueError, match="adj_t"):
        starling.from_pyg(data)
    data.adj_t, data.edge_index = None, kept
    data.y = y + 0.5
    with pytest.raises(ValueError, match="labels: item 0"):
        starling.from_pyg(data)
    model = starling.train(starling.from_pyg(data, numbers=True), epochs=1)
    assert model.description["configuration"]["loss"] == "mse"
    data.y = y[:1]
    with pytest.raises(ValueError, match="labels: shape"):
        starling.from_pyg(data)
    data.y = y[:, None]
    expected = losses(starling.from_pyg(data))
    data.train_mask = data.train_mask.to(torch.uint8)
    assert losses(starling.from_pyg(data)) == expected
    data.train_mask[3] = 2
    with pytest.raises(ValueError, match="train_mask: item 3 is 2"):
        starling.from_pyg(data)
    data.x = data.x.to_sparse()
    with pytest.raises(TypeError, match="x: a sparse tensor"):
        starling.from_pyg(data)


def test_dgl_files(tmp_path):
    """A file of dgl.save_graphs is the graph in it."""
    dgl = pytest.importorskip("dgl")
    import torch
    g = dgl.graph((torch.tensor([0, 2, 1, 0]), torch.tensor([1, 1, 3, 2])), num_nodes=4)
    g.ndata["feat"], g.ndata["label"] = torch.rand(4, 5), torch.tensor([0, 1, 0, 1])
    g.edata["w"] = torch.rand(4)
    path = tmp_path / "g.bin"
    dgl.save_graphs(str(path), [g])
    for name, given in ("file", path), ("text", str(path)), ("graph", g):
        starling.from_dgl(given).save(tmp_path / name)
    for name in "indptr", "indices", "weights", "features", "labels":
        arrays = [np.load(tmp_path / folder / f"{name}.npy") for folder in ("file", "text", "graph")]
        assert all((array == arrays[2]).all() for array in arrays)
    dgl.save_graphs(str(path), [g, g])
    with pytest.raises(ValueError, match=r"g.bin: 2 graphs \(expected one\)"):
        starling.from_dgl(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        starling.from_dgl(tmp_path / "nowhere")


def test_dgl_names():
    data = pyg_data(True)
    import torch
    g = FakeDGL(data)
    with pytest.raises(KeyError, match=r"features: 'feats' is not there.*'feat', 'label'"):
        starling.from_dgl(g, features="feats")
    plain = losses(starling.from_dgl(g))
    g.edata["w"] = torch.rand(data.num_edges)
    assert losses(starling.from_dgl(g, weights=None)) == plain != losses(starling.from_dgl(g))
    g.edata["time"] = g.edata.pop("w")
    with pytest.raises(ValueError, match=r"edges have \['time'\]"):
        starling.from_dgl(g)
    assert losses(starling.from_dgl(g, weights="time")) != plain
    del g.edata["time"]
    g.ndata["labels"] = g.ndata.pop("label")
    with pytest.raises(KeyError, match=r"labels: 'label' is not there.*'labels'"):
        starling.from_dgl(g)
    assert losses(starling.from_dgl(g, labels="labels")) == plain
    assert starling.from_dgl(g, labels=None).classes == 0
    g.is_homogeneous = False
    with pytest.raises(ValueError, match="homogeneous"):
        starling.from_dgl(g)


def test_dgl_itself_is_asked_alike():
    dgl = pytest.importorskip("dgl")
    import torch
    g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    assert starling.from_dgl(g).features == 3
    g.ndata["feat"], g.ndata["label"] = torch.ones(3, 5), torch.tensor([0, 1, 0])
    g.edata["w"] = torch.rand(3)
    assert starling.from_dgl(g).features == 5
    with pytest.raises(KeyError, match="feats"):
        starling.from_dgl(g, features="feats")
    with pytest.raises(ValueError, match="homogeneous"):
        starling.from_dgl(dgl.heterograph({("a", "to", "b"): ([0], [1])}))
    with pytest.raises(ValueError, match="block"):
        starling.from_dgl(dgl.to_block(g))


def test_networkx():
    networkx = pytest.importorskip("networkx")
    indptr, indices, x, labels, masks = make_arrays()
    expected = losses(starling.Graph(indptr, indices, x, labels, masks))
    g = networkx.Graph()
    names = [f"v{v}" for v in range(90)]
    g.add_nodes_from((name, {"x": row, "y": int(y)}) for name, row, y in zip(names, x, labels))
    edges = [(names[v], names[u]) for v in range(90) for u in indices[indptr[v]:indptr[v + 1]]]
    g.add_edges_from(edges)
    assert losses(starling.from_networkx(g, "x", "y", masks)) == expected
    assert losses(starling.from_networkx(g, x, labels, masks)) == expected
    directed = networkx.DiGraph()
    directed.add_nodes_from(names)
    directed.add_edges_from((u, v) for v, u in edges)
    assert losses(starling.from_networkx(directed, x, labels, masks)) == expected
    with pytest.raises(KeyError, match="features: 'feat' is not there for node 'v0'.*'x', 'y'"):
        starling.from_networkx(g, "feat")
    g.edges[edges[7]]["weight"] = 2.0
    with pytest.raises(KeyError, match="weights: 'weight' is not there for edge"):
        starling.from_networkx(g, "x", "y", masks)
    assert losses(starling.from_networkx(g, "x", "y", masks, weights=None)) == expected
    networkx.set_edge_attributes(g, 2.0, "weight")
    weighted = starling.Graph(indptr, indices, x, labels, masks, np.full(len(indices), 2.0))
    assert losses(starling.from_networkx(g, "x", "y", masks)) == losses(weighted)


def test_save(tmp_path):
    graph = make()
    graph.save(tmp_path / "saved")
    read = starling.Graph.open(tmp_path / "saved")
    assert losses(read) == losses(graph)
    read.save(tmp_path / "again.npz")
    again = starling.Graph.open(tmp_path / "again.npz")
    assert (again.vertices, again.entries, again.classes) == (90, graph.entries, 3)
    with pytest.raises(starling.Error, match="saved"):
        graph.save(tmp_path / "saved")


def test_copies():
    graph = make()
    with pytest.raises(TypeError, match="save"):
        copy.deepcopy(graph)
    model = starling.train(graph, epochs=5, patience=3, eval_every=1)
    expected = model.predict(graph).logits.copy()
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)]
    model.weights["layer.0.weight"][...] = 0
    for other in copies:
        np.testing.assert_array_equal(other.predict(graph).logits, expected)
        assert vars(other.result) == pytest.approx(vars(model.result), nan_ok=True)
        assert other.description == model.description
    with pytest.raises(ValueError, match=r"layer.0.weight: shape \(8,\)"):
        model.weights["layer.0.weight"] = np.ones(8)
    with pytest.raises(KeyError, match="'layer.9.weight' is not there.*layer.0.weight"):
        model.weights["layer.9.weight"] = np.ones(8)
    again = pickle.loads(pickle.dumps(copies[0]))
    np.testing.assert_array_equal(again.predict(graph).logits, expected)

    def loss(logits, labels, _vertices):
        gradient = np.ones_like(logits)
        return logits.sum(1), gradient

    model = copy.deepcopy(starling.train(graph, loss=loss, epochs=1))
    del loss
    assert model.predict(graph).logits.shape == (90, 3)  # the copy keeps the function


@pytest.fixture
def ctrl_c():
    """Python's handler of SIGINT, which a job in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def interrupted(seconds):
    """Ctrl-C after some seconds; gives a list that gets the time of it."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, send)
    timer.start()
    try:
        yield sent
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.parametrize("callback", [None, lambda e: None, lambda e: time.sleep(5)])
def test_interrupt(callback, ctrl_c):
    graph = make()
    starling.train(graph, epochs=1)
    with interrupted(1.0) as sent, pytest.raises(KeyboardInterrupt) as caught:
        starling.train(graph, callback=callback, epochs=10 ** 6)
    assert time.monotonic() - sent[0] < 60  # not after all epochs
    model = caught.value.model
    assert model.result.stopped and 0 < model.result.epochs < 10 ** 6
    assert model.predict(graph).logits.shape == (90, 3)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):  # Python has its handler again
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    assert not starling.train(graph, epochs=2).result.stopped


def test_interrupt_of_a_handler_of_ones_own(ctrl_c):
    graph, seen = make(), []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with interrupted(0.2):
            model = starling.train(graph, callback=lambda e: bool(seen), epochs=10 ** 6)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1] and model.result.stopped
