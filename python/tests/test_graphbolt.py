"""Dataset folders of DGL's GraphBolt: the same graph as from arrays, and what is refused."""
import builtins
import copy

import numpy as np
import pytest

import starling
from test_doors import losses
from test_starling import make_arrays

yaml = pytest.importorskip("yaml")

N = 90
SETS = {"train_set": "train", "validation_set": "val", "test_set": "test"}


def arrays():
    """A directed graph: sources, targets, features, labels, masks."""
    indptr, indices, x, labels, masks = make_arrays()
    target = np.repeat(np.arange(N), np.diff(indptr))
    kept = (indices + 2 * target) % 3 < 2  # some edges one way
    order = np.random.default_rng(2).permutation(np.flatnonzero(kept))
    return indices[order].astype(np.int64), target[order], x, labels, masks


def expected(**changes):
    """The graph of arrays() from SciPy."""
    sparse = pytest.importorskip("scipy.sparse")
    source, target, x, labels, masks = arrays()
    options = {"features": x, "labels": labels, "masks": masks, **changes}
    weights = options.pop("weights", np.ones(len(source)))
    return starling.from_scipy(sparse.coo_matrix((weights, (source, target)), (N, N)), **options)


def store(folder, path, array, form="numpy", **more):
    """Write an array; return its entry in metadata.yaml."""
    path += ".pt" if form == "torch" else ".npy"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    if form == "torch":
        torch = pytest.importorskip("torch")
        torch.save(torch.tensor(array), folder / path)
    else:
        np.save(folder / path, array)
    return {"format": form, "path": path, **more}


def describe(folder, metadata):
    (folder / "metadata.yaml").write_text(yaml.safe_dump(metadata))
    return folder


def write(folder, edges="csv", form="numpy", seeds="seeds", in_memory=None):
    """Write the folder of arrays(); return its metadata."""
    folder.mkdir(exist_ok=True)
    source, target, x, labels, masks = arrays()
    there = {} if in_memory is None else {"in_memory": in_memory}
    if edges == "csv":
        (folder / "edges").mkdir(exist_ok=True)
        (folder / "edges/all.csv").write_text("".join(f"{u},{v}\n" for u, v in zip(source, target)))
        entry = {"format": "csv", "path": "edges/all.csv"}
    else:
        entry = store(folder, "edges/all", np.stack([source, target]))
    task = {"name": "node_classification", "num_classes": 3}
    for name, split in SETS.items():
        v = np.flatnonzero(masks[split])
        task[name] = [{"data": [store(folder, f"set/{split}-seeds", v, form, name=seeds, **there),
                                store(folder, f"set/{split}-labels", labels[v].astype(np.int64), form,
                                      name="labels", **there)]}]
    metadata = {
        "dataset_name": "drawn", "graph": {"nodes": [{"num": N}], "edges": [entry]},
        "feature_data": [
            store(folder, "node/other", x[:, :4], form, domain="node", name="other", **there),
            store(folder, "node/feat", x, form, domain="node", name="feat", **there)],
        "tasks": [{"name": "nothing"}, task]}
    describe(folder, metadata)
    return metadata


@pytest.mark.parametrize("edges", ["csv", "numpy"])
@pytest.mark.parametrize("form", ["numpy", "torch"])
@pytest.mark.parametrize("seeds, in_memory", [("seeds", None), ("seed_nodes", True), ("seeds", False)])
def test_same_as_from_arrays(edges, form, seeds, in_memory, tmp_path):
    write(tmp_path, edges, form, seeds, in_memory)
    graph = starling.from_graphbolt(tmp_path, 1)
    assert (graph.vertices, graph.entries, graph.classes) == (N, len(arrays()[0]), 3)
    assert losses(graph) == losses(expected())
    model = starling.train(graph, epochs=5, workers=1)
    other = starling.train(expected(), epochs=5, workers=1)
    for split in "train", "val", "test":
        assert getattr(model.result, f"{split}_accuracy") == getattr(other.result, f"{split}_accuracy")
    assert not np.array_equal(losses(graph, dropout=0), losses(reversed_graph(), dropout=0))


def graphbolt():
    """DGL's GraphBolt, whose import fails in several ways beside another PyTorch."""
    try:
        import dgl.graphbolt
    except Exception as error:
        pytest.skip(f"dgl.graphbolt: {error}")
    return dgl.graphbolt


def reversed_graph():
    sparse = pytest.importorskip("scipy.sparse")
    source, target, x, labels, masks = arrays()
    return starling.from_scipy(sparse.coo_matrix((np.ones(len(source)), (target, source)), (N, N)), x,
                               labels, masks)


def test_graphbolt_itself_opens_the_folder(tmp_path):
    gb = graphbolt()
    write(tmp_path, "csv", "torch")
    graph = starling.from_graphbolt(str(tmp_path), "node_classification")
    dataset = gb.OnDiskDataset(str(tmp_path)).load()
    assert dataset.graph.total_num_nodes == graph.vertices
    assert dataset.graph.total_num_edges == graph.entries
    v = 7  # the sources of edges to v, in both
    indptr, indices = dataset.graph.csc_indptr, dataset.graph.indices
    source, target = arrays()[:2]
    assert sorted(indices[indptr[v]:indptr[v + 1]].tolist()) == sorted(source[target == v].tolist())
    # The folder has preprocessed/ beside its own files now, and later nothing else.
    assert losses(starling.from_graphbolt(tmp_path, 1)) == losses(graph)
    (tmp_path / "metadata.yaml").unlink()
    with pytest.raises(ValueError, match="has only what DGL preprocessed, expected a metadata.yaml"):
        starling.from_graphbolt(tmp_path)
    with pytest.raises(ValueError, match="has only what DGL preprocessed"):
        starling.from_graphbolt(tmp_path / "preprocessed")


def test_names_of_features_and_tasks(tmp_path):
    metadata = write(tmp_path)
    x = arrays()[2]
    assert losses(starling.from_graphbolt(tmp_path, 1, features="other")) == losses(
        expected(features=x[:, :4]))
    assert starling.from_graphbolt(tmp_path, 1, features=None).features == N
    with pytest.raises(KeyError, match="features: 'f' is not there.*'feat', 'other'"):
        starling.from_graphbolt(tmp_path, features="f")
    assert starling.from_graphbolt(tmp_path, None).classes == 0
    assert starling.from_graphbolt(tmp_path, "nothing").classes == 0
    for wrong in 2, -1, "other":
        with pytest.raises(ValueError, match=r"metadata.yaml: task .* expected 0 to 1 or one of \['noth"):
            starling.from_graphbolt(tmp_path, wrong)
    metadata["feature_data"].pop()
    describe(tmp_path, metadata)
    with pytest.raises(KeyError, match=r"'feat' is not there \(expected one of \['other'\], or None"):
        starling.from_graphbolt(tmp_path)
    metadata["feature_data"] = [store(tmp_path, "node/one", x[:, 0].astype(float), domain="node",
                                      name="feat"),
                                store(tmp_path, "whole", x[:1], domain="graph", name="of the graph")]
    del metadata["tasks"]
    describe(tmp_path, metadata)
    graph = starling.from_graphbolt(tmp_path)
    assert (graph.features, graph.classes) == (1, 0)
    with pytest.raises(ValueError, match="task 1 is not there"):
        starling.from_graphbolt(tmp_path, 1)


def test_weights_and_edge_features(tmp_path):
    metadata = write(tmp_path)
    w = np.random.default_rng(6).random(len(arrays()[0]))
    metadata["feature_data"].append(store(tmp_path, "edge/w", w, domain="edge", name="w"))
    describe(tmp_path, metadata)
    weighted = losses(expected(weights=w))
    assert losses(starling.from_graphbolt(tmp_path, 1)) == weighted != losses(expected())
    assert losses(starling.from_graphbolt(tmp_path, 1, weights=None)) == losses(expected())
    metadata["feature_data"].append(store(tmp_path, "edge/f", np.stack([w, 1 - w], 1), "torch",
                                          domain="edge", name="feat"))
    describe(tmp_path, metadata)
    with pytest.raises(ValueError, match=r"edges have \['feat', 'w'\]: expected weights= one of"):
        starling.from_graphbolt(tmp_path, 1)
    graph = starling.from_graphbolt(tmp_path, 1, weights=None, edge_features="feat")
    assert losses(graph, model="gat") != losses(expected(), model="gat")
    assert losses(starling.from_graphbolt(tmp_path, 1, weights="w")) == weighted
    np.save(tmp_path / "edge/w.npy", w[1:])
    with pytest.raises(ValueError, match=rf"w.npy: shape \({len(w) - 1}, 1\), expected \({len(w)}, any"):
        starling.from_graphbolt(tmp_path, 1, weights="w")


def test_labels(tmp_path):
    metadata = write(tmp_path)
    *_, labels, masks = arrays()
    several = np.stack([labels == 0, labels > 0], 1)
    numbers = np.linspace(-1, 1, N)
    for array, options in (several.astype(float), {}), (several, {}), (numbers, {"numbers": True}):
        for split, mask in masks.items():
            np.save(tmp_path / f"set/{split}-labels.npy", array[mask])
        given = array.astype(np.float32)
        assert losses(starling.from_graphbolt(tmp_path, 1, **options)) == losses(
            expected(labels=given, **options))
    with pytest.raises(ValueError, match="labels: item . is -.*numbers=True"):
        starling.from_graphbolt(tmp_path, 1)
    np.save(tmp_path / "set/val-labels.npy", several[masks["val"]])
    with pytest.raises(ValueError, match=r"val-labels.npy: shape \(\d+, 2\), expected \(\d+,\) as in"):
        starling.from_graphbolt(tmp_path, 1, numbers=True)
    write(tmp_path)
    del metadata["tasks"][1]["test_set"][0]["data"][1]  # as of a hidden test set
    describe(tmp_path, metadata)
    none = np.where(masks["test"], -1, labels)
    graph = starling.from_graphbolt(tmp_path, 1)
    assert losses(graph) == losses(expected(labels=none))
    assert np.isnan(starling.train(graph, epochs=1).result.test_accuracy)
    for part in "seeds", "labels":
        np.save(tmp_path / f"set/val-{part}.npy", np.zeros(0, int))
    metadata["graph"]["nodes"][0]["type"] = metadata["graph"]["edges"][0]["type"] = None  # as DGL's pages say
    describe(tmp_path, metadata)
    few = np.where(masks["train"], labels, -1)
    assert losses(starling.from_graphbolt(tmp_path, 1)) == losses(
        expected(labels=few, masks={**masks, "val": np.zeros(N, bool)}))
    metadata["tasks"][1]["num_classes"] = 2
    describe(tmp_path, metadata)
    with pytest.raises(starling.Error, match="label 2 of vertex .* expected -1"):
        losses(starling.from_graphbolt(tmp_path, 1))


def test_bfloat16_and_untidy_lines(tmp_path):
    torch = pytest.importorskip("torch")
    metadata = write(tmp_path)
    x = torch.tensor(arrays()[2]).to(torch.bfloat16)
    torch.save(x, tmp_path / "node/feat.pt")
    metadata["feature_data"][1].update(path="node/feat.pt", format="torch")
    describe(tmp_path, metadata)
    lines = (tmp_path / "edges/all.csv").read_text().replace(",", " , ", 7).replace("\n", "\r\n", 20)
    (tmp_path / "edges/all.csv").write_text(lines + "\n\n")
    assert losses(starling.from_graphbolt(tmp_path, 1)) == losses(expected(features=x.float().numpy()))
    (tmp_path / "edges/all.csv").write_text("")
    assert starling.from_graphbolt(tmp_path, 1).entries == 0


def hetero(folder):
    """Authors write papers, papers cite papers; both in files of their own numbers."""
    folder.mkdir(exist_ok=True)
    (folder / "writes.csv").write_text("0,1\n2,0\n2,1\n")
    x = np.array([[1, 0], [2, 3]], np.float32)
    return {
        "graph": {"nodes": [{"type": "paper", "num": 2}, {"type": "author", "num": 3}],
                  "edges": [{"type": "paper:cites:paper",
                             **store(folder, "cites", np.array([[0, 0], [1, 1]]))},
                            {"type": "author:writes:paper", "format": "csv", "path": "writes.csv"}]},
        "feature_data": [store(folder, "x", x, domain="node", type="paper", name="feat")],
        "tasks": [{"train_set": [{"type": "paper", "data": [
            store(folder, "seeds", np.array([1, 0]), name="seeds"),
            store(folder, "labels", np.array([0, 1]), name="labels")]}]}]}


def test_several_types(tmp_path):
    """The same as from PyG's HeteroData, with types in the order of names."""
    metadata = hetero(tmp_path)
    starling.from_graphbolt(describe(tmp_path, metadata)).save(tmp_path / "saved")
    read = {name: np.load(tmp_path / f"saved/{name}.npy").tolist()
            for name in ("indptr", "indices", "edge_types", "labels", "train_idx", "features_indptr",
                         "features_indices", "features_data")}
    assert read == {"indptr": [0, 0, 0, 0, 1, 4], "indices": [2, 0, 2, 3], "edge_types": [0, 0, 0, 1],
                    "labels": [-1, -1, -1, 1, 0], "train_idx": [3, 4], "features_indptr": [0, 1, 2, 3, 5, 8],
                    "features_indices": [0, 1, 2, 3, 5, 3, 4, 5], "features_data": [1, 1, 1, 1, 1, 2, 3, 1]}
    assert losses(starling.from_graphbolt(tmp_path), model="rgcn", encoder="linear")
    assert starling.from_graphbolt(tmp_path, features=None).features == 5
    gb = graphbolt()
    metadata["graph"]["edges"][1].update(store(tmp_path, "writes", np.array([[0, 2, 2], [1, 0, 1]])))
    describe(tmp_path, metadata)  # DGL 2.1 and pandas 3 do not read several types from CSV
    opened = gb.OnDiskDataset(str(tmp_path)).load().graph
    assert opened.num_nodes == {"author": 3, "paper": 2}
    assert opened.num_edges == {"author:writes:paper": 3, "paper:cites:paper": 2}
    assert opened.indices.tolist() == [2, 0, 2, 3, 3] and opened.csc_indptr.tolist() == [0, 0, 0, 0, 1, 5]


@pytest.mark.parametrize("change, sentence", [
    (lambda m: m["graph"]["nodes"][0].pop("type"), "nodes, item 0: type is None, expected text"),
    (lambda m: m["graph"]["nodes"][1].update(type="paper"), "type 'paper' is there twice"),
    (lambda m: m["graph"]["edges"][1].update(type="author:paper"), "expected SOURCE:NAME:TARGET"),
    (lambda m: m["graph"]["edges"][1].update(type="a:writes:paper"), "expected SOURCE:NAME:TARGET"),
    (lambda m: m["graph"]["edges"][1].update(type="paper:writes:author"),
     r"writes.csv: edge 1 is 2 -> 0, expected 0 to 1 -> 0 to 2"),
    (lambda m: m["feature_data"][0].pop("type"), r"type is None, expected one of \['author', 'paper'\]"),
    (lambda m: m["feature_data"][0].update(type=["paper"]), r"type is \['paper'\], expected one of"),
    (lambda m: m["feature_data"][0].update(type="author"), r"x.npy: shape \(2, 2\), expected \(3, any\)"),
    (lambda m: m["feature_data"].append(dict(m["feature_data"][0])), "'feat' is there twice"),
    (lambda m: m["feature_data"][0].update(domain="edge", type="paper:cites:paper"),
     "edges have relations and .*weights=None"),
    (lambda m: m["tasks"][0]["train_set"].append({**m["tasks"][0]["train_set"][0], "type": "author"}),
     r"\['author', 'paper'\] have labels, expected one type")])
def test_several_types_refused(change, sentence, tmp_path):
    metadata = hetero(tmp_path)
    change(metadata)
    with pytest.raises(ValueError, match=sentence):
        starling.from_graphbolt(describe(tmp_path, metadata))


def test_one_type_of_vertices_and_two_relations(tmp_path):
    source, target, x, labels, masks = arrays()
    metadata = write(tmp_path)
    half = np.arange(len(source)) % 2 == 0
    metadata["graph"] = {
        "nodes": [{"type": "v", "num": N}],
        "edges": [{"type": f"v:{name}:v", **store(tmp_path, name, np.stack([source, target])[:, which])}
                  for name, which in (("b", half), ("a", ~half))]}
    for item in metadata["feature_data"] + [metadata["tasks"][1][name][0] for name in SETS]:
        item["type"] = "v"
    describe(tmp_path, metadata)
    order = np.lexsort((half, source, target))
    indptr = np.append(0, np.cumsum(np.bincount(target, minlength=N)))
    other = starling.Graph(indptr, source[order], x, labels, masks, edge_types=half[order].astype(int))
    assert losses(starling.from_graphbolt(tmp_path, 1), model="rgcn") == losses(other, model="rgcn")


def links(folder, form="negative_dsts"):
    """A task of links in either form; returns metadata, and the links as Graph takes them."""
    source, target = arrays()[:2]
    random, keys = np.random.default_rng(8), set(zip(source.tolist(), target.tolist()))
    free = np.array([(u, v) for u in range(N) for v in range(u)
                     if not keys & {(u, v), (v, u)}])[random.permutation(1000)]
    metadata = write(folder)
    task = {"name": "link_prediction", "train_set": [{"data": [
        store(folder, "lp/train", np.stack([source, target], 1), name="node_pairs")]}]}
    given = {}
    for name, split, first in (("validation_set", "val", 0), ("test_set", "test", 100)):
        pairs, ends = free[first:first + 20], random.integers(0, N, (20, 3))
        others = np.stack([pairs[:, 0].repeat(3), ends.ravel()], 1)
        given[split] = (pairs, others)
        if form == "negative_dsts":
            data = [store(folder, f"lp/{split}", pairs, name="node_pairs"),
                    store(folder, f"lp/{split}-neg", ends, name="negative_dsts")]
        elif form == "both":
            data = [store(folder, f"lp/{split}", pairs, name="seeds"),
                    store(folder, f"lp/{split}-negs", pairs[:, :1].repeat(3, 1), name="negative_srcs"),
                    store(folder, f"lp/{split}-neg", ends, name="negative_dsts")]
        else:
            mixed = random.permutation(80)
            rows = {"seeds": np.append(others, pairs, 0), "labels": np.repeat([0.0, 1.0], [60, 20]),
                    "indexes": np.append(np.arange(20).repeat(3), np.arange(20))}
            data = [store(folder, f"lp/{split}-{name}", array[mixed], name=name)
                    for name, array in rows.items()]
        task[name] = [{"data": data}]
    metadata["tasks"].append(task)
    return describe(folder, metadata), metadata, given


@pytest.mark.parametrize("form", ["negative_dsts", "both", "indexes"])
def test_links(form, tmp_path):
    folder, _, given = links(tmp_path, form)
    source, target, x, *_ = arrays()
    order = np.lexsort((source, target))
    indptr = np.append(0, np.cumsum(np.bincount(target, minlength=N)))
    other = starling.Graph(indptr, source[order], x, links=given)
    found = [starling.train(graph, task="links", metric="mrr", epochs=5, workers=1).result
             for graph in (starling.from_graphbolt(folder, "link_prediction"), other)]
    for name in "loss", "val_score", "test_score":
        assert getattr(found[0], name) == getattr(found[1], name) > 0


def test_links_refused(tmp_path):
    folder, metadata, given = links(tmp_path)
    source, target = arrays()[:2]

    def refused(sentence, split=None, **files):
        for name, array in files.items():
            np.save(tmp_path / f"lp/{name.replace('_', '-')}.npy", array)
        changed = copy.deepcopy(metadata)
        if split:
            split(changed["tasks"][2])
        describe(tmp_path, changed)
        with pytest.raises(ValueError, match=sentence):
            starling.from_graphbolt(folder, 2)

    pairs = np.stack([source, target], 1)
    refused(r"train.npy: 1 links are no edges", train=np.append(pairs, given["val"][0][:1], 0))
    refused(r"train_set, item 0: has \d+ links, and the graph \d+ edges", train=pairs[:30])
    refused(r"val.npy: 1 links are edges of the graph", train=pairs,
            val=np.append(pairs[:1], given["val"][0][1:], 0))
    refused(r"val.npy: link 1 is -4 -> 6, expected 0 to 89 -> 0 to 89",
            val=np.append([[3, 4], [-4, 6]], given["val"][0][2:], 0))
    refused(r"val.npy: shape \(20, 3\), expected \(vertices,\) or \(links, 2\)", val=np.zeros((20, 3), int))
    refused(r"val-neg.npy: shape \(19, 3\), expected \(20, any\)", val=given["val"][0],
            val_neg=np.zeros((19, 3), int))
    refused(r"val-neg.npy: row 0, column 0 is 90, expected 0 to 89", val_neg=np.full((20, 3), 90))
    refused(r"validation_set, item 0: has \['node_pairs'\], expected negative_dsts",
            lambda task: task["validation_set"][0]["data"].pop())
    refused("some sets have vertices and some have links",
            lambda task: task.update(test_set=metadata["tasks"][1]["test_set"]),
            val_neg=given["val"][1][:, 1].reshape(20, 3))
    labels = store(tmp_path, "lp/ones", np.ones(20), name="labels")
    refused("has labels of edges, expected labels of vertices, or links with indexes",
            lambda task: task["validation_set"][0]["data"].append(labels))
    indexes = store(tmp_path, "lp/index", np.zeros(20), name="indexes")
    refused("index.npy: expected one link and equally many negatives of each index",
            lambda task: task["validation_set"][0]["data"].extend([labels, indexes]))


@pytest.mark.parametrize("path, sentence", [
    ("edges/all.csv", r"all.csv: is not there, expected the file of .*metadata.yaml: graph: edges, item 0"),
    ("node/feat.npy", "feat.npy: is not there, expected the file of .*feature_data, item 1"),
    ("set/val-labels.npy", r"val-labels.npy: is not there.*validation_set, item 0: data, item 1"),
    ("metadata.yaml", "metadata.yaml: is not there, expected the description")])
def test_missing_files(path, sentence, tmp_path):
    write(tmp_path)
    (tmp_path / path).unlink()
    with pytest.raises(FileNotFoundError, match=sentence):
        starling.from_graphbolt(tmp_path, 1)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        starling.from_graphbolt(tmp_path / "nowhere")


@pytest.mark.parametrize("text, sentence", [
    ("source,target\n0,1\n", "line 1 is 'source,target', expected SOURCE,TARGET, two whole numbers"),
    ("0,1\n\n1,2,3\n", "line 3 is '1,2,3'"), ("0,1,5\n1,2,5\n", "line 1 is '0,1,5'"), ("0,1\n1\n", "line 2 is '1'"),
    ("0,1.5\n", "line 1 is '0,1.5'"), ("0 1\n", "line 1 is '0 1'"), ("0,\xe9\n", "line 1 is '0,"),
    ("0,1\n3,90\n", "edge 1 is 3 -> 90, expected 0 to 89 -> 0 to 89"), ("-1,2\n", "edge 0 is -1 -> 2"),
    ("0,99999999999999999999\n", "line 1 is '0,9999"), ("\0\1\2", "line 1 is ")])
def test_wrong_lines(text, sentence, tmp_path):
    write(tmp_path)
    (tmp_path / "edges/all.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="all.csv: " + sentence):
        starling.from_graphbolt(tmp_path, 1)


@pytest.mark.parametrize("path, array, sentence", [
    ("edges/all", np.zeros((5, 2), int), r"all.npy: shape \(5, 2\), expected \(2, any\)"),
    ("edges/all", np.array([[0, 1.5], [1, 2]]), "all.npy: row 0, column 1 is 1.5, expected an integer"),
    ("edges/all", np.array([[0, 1], [1, 90]]), "all.npy: edge 1 is 1 -> 90, expected 0 to 89"),
    ("node/feat", np.zeros((89, 12), "f4"), r"feat.npy: shape \(89, 12\), expected \(90, any\)"),
    ("node/feat", np.zeros((90, 2, 2), "f4"), r"feat.npy: shape \(90, 2, 2\), expected \(90, any\)"),
    ("node/feat", np.array(3.0), r"feat.npy: shape \(\), expected \(90, any\)"),
    ("node/feat", np.full((90, 2), "a"), "feat.npy: items are <U1, expected numbers"),
    ("node/feat", np.full((90, 2), None), "feat.npy: Object arrays cannot be loaded"),
    ("node/feat", np.full((90, 2), 1e300), "feat.npy: row 0, column 0 is 1e.300, expected a number that"),
    ("set/val-seeds", np.array([3, 90]), "val-seeds.npy: item 1 is 90, expected 0 to 89"),
    ("set/val-seeds", np.array([3, -1]), "val-seeds.npy: item 1 is -1, expected 0 to 89"),
    ("set/val-seeds", np.array([0.5]), "val-seeds.npy: item 0 is 0.5, expected an integer"),
    ("set/val-seeds", np.array(5), r"val-seeds.npy: shape \(\), expected \(vertices,\) or \(links, 2\)"),
    ("set/val-seeds", np.zeros((4, 3), int), r"val-seeds.npy: shape \(4, 3\), expected \(vertices,\)"),
    ("set/val-labels", np.zeros(5, int), r"val-labels.npy: shape \(5,\), expected \(\d\d,\)")])
def test_wrong_arrays(path, array, sentence, tmp_path):
    write(tmp_path, "numpy")
    np.save(tmp_path / (path + ".npy"), array)
    with pytest.raises((ValueError, TypeError), match=sentence):
        starling.from_graphbolt(tmp_path, 1)


def test_other_files_than_arrays(tmp_path):
    metadata = write(tmp_path, in_memory=False)
    feat = tmp_path / "node/feat.npy"
    whole = feat.read_bytes()
    for wrong in b"", b"text", whole[:-4], whole[:40]:
        feat.write_bytes(wrong)
        for in_memory in False, True:
            metadata["feature_data"][1]["in_memory"] = in_memory
            describe(tmp_path, metadata)
            with pytest.raises(ValueError, match="feat.npy: .*expected an array of numpy.save"):
                starling.from_graphbolt(tmp_path, 1)
    with open(feat, "wb") as file:
        np.savez(file, x=np.ones(3))
    with pytest.raises(ValueError, match="feat.npy: is an archive, expected an array of numpy.save"):
        starling.from_graphbolt(tmp_path, 1)
    metadata["feature_data"][1]["format"] = "csv"
    with pytest.raises(ValueError, match="feature_data, item 1: format is 'csv', expected 'numpy' or"):
        starling.from_graphbolt(describe(tmp_path, metadata), 1)
    torch = pytest.importorskip("torch")
    metadata["feature_data"][1]["format"] = "torch"
    describe(tmp_path, metadata)
    with pytest.raises(ValueError, match="feat.npy: .*expected a tensor of torch.save"):
        starling.from_graphbolt(tmp_path, 1)
    torch.save({"x": torch.ones(3)}, feat)
    with pytest.raises(ValueError, match="feat.npy: is dict, expected a tensor of torch.save"):
        starling.from_graphbolt(tmp_path, 1)
    torch.save(torch.eye(N).to_sparse(), feat)
    with pytest.raises(TypeError, match="feat.npy: a sparse tensor"):
        starling.from_graphbolt(tmp_path, 1)
    torch.save(print, feat)  # a pickle that names a function
    with pytest.raises(ValueError, match="feat.npy: .*expected a tensor of torch.save"):
        starling.from_graphbolt(tmp_path, 1)


@pytest.mark.parametrize("text, sentence", [
    ("a: [", "metadata.yaml: is no YAML from line 1 on"), ("- 1", "metadata.yaml: is list, expected a mapping"),
    ("", "is NoneType, expected a mapping"), ("graph: 3", "graph is 3, expected a mapping"),
    ("graph: {nodes: 5}", "graph: nodes is 5, expected a list"),
    ("graph: {edges: [{}]}", "graph: has no nodes, expected nodes and edges"),
    ("graph: {nodes: [{}], edges: [{}]}", "graph: nodes, item 0: num is None, expected a whole number"),
    ("graph: {nodes: [{num: -1}], edges: [{}]}", "num is -1, expected how many"),
    ("graph: {nodes: [3], edges: [{}]}", "nodes, item 0: is 3, expected a mapping with num"),
    ("graph: {nodes: [{num: 3}], edges: [3]}", "edges, item 0: is 3, expected a mapping"),
    ("graph: {nodes: [{num: 3, type: 4}], edges: [{}]}", "nodes, item 0: type is 4, expected text"),
    ("graph: {nodes: [{num: 3}], edges: [{format: csv}]}", "edges, item 0: path is None, expected text"),
    ("graph: {nodes: [{num: 3}], edges: [{format: torch, path: metadata.yaml}]}",
     "edges, item 0: format is 'torch', expected 'csv' or 'numpy'")])
def test_wrong_descriptions(text, sentence, tmp_path):
    (tmp_path / "metadata.yaml").write_text(text)
    with pytest.raises(ValueError, match=sentence):
        starling.from_graphbolt(tmp_path)


@pytest.mark.parametrize("change, sentence", [
    (lambda m: m["tasks"].append(4), r"tasks, item 2: is 4, expected a mapping"),
    (lambda m: m["tasks"][1].update(num_classes="3"), "num_classes is '3', expected a whole number"),
    (lambda m: m["tasks"][1]["train_set"][0].update(type="v"),
     "train_set, item 0: type is 'v', expected none, since graph has none"),
    (lambda m: m["tasks"][1]["train_set"][0]["data"].pop(0), r"data has \['labels'\], expected seeds"),
    (lambda m: m["tasks"][1]["train_set"][0]["data"][0].pop("name"), "item 0: name is None, expected text"),
    (lambda m: m["tasks"][1]["train_set"][0].pop("data"), "train_set, item 0: data is None, expected a list"),
    (lambda m: m["feature_data"][0].update(domain="vertex"), "domain is 'vertex', expected 'node' or"),
    (lambda m: m["tasks"][1]["test_set"].append({"data": [
        m["tasks"][1]["test_set"][0]["data"][0], {**m["tasks"][1]["test_set"][0]["data"][1],
                                                  "path": "set/zeros.npy"}]}),
     "test-labels.npy: vertex \\d+ has another label elsewhere")])
def test_wrong_entries(change, sentence, tmp_path):
    metadata = write(tmp_path)
    np.save(tmp_path / "set/zeros.npy", np.zeros(len(np.load(tmp_path / "set/test-labels.npy")), int))
    change(metadata)
    with pytest.raises(ValueError, match=sentence):
        starling.from_graphbolt(describe(tmp_path, metadata), len(metadata["tasks"]) - 1)


@pytest.mark.parametrize("package, sentence", [
    ("yaml", "metadata.yaml: PyYAML is not installed"), ("torch", "feat.pt: PyTorch is not installed")])
def test_missing_packages(package, sentence, tmp_path, monkeypatch):
    write(tmp_path)
    metadata = yaml.safe_load((tmp_path / "metadata.yaml").read_text())
    metadata["feature_data"][1].update(format="torch", path="node/feat.pt")
    describe(tmp_path, metadata)
    (tmp_path / "node/feat.pt").write_bytes(b"")
    usual = builtins.__import__

    def without(name, *arguments, **options):
        if name == package:
            raise ImportError(name)
        return usual(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=sentence):
        starling.from_graphbolt(tmp_path, 1)
