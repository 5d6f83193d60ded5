#!/bin/sh
# Models go to PyTorch Geometric and come back (contrib/pyg.py): the logits are equal to 1e-4. One line per case.
# $SL_PEER_PYTHON (python3) is an interpreter that has torch_geometric and safetensors; without them this is skipped.
# Wants $STARLING, the program, and $top_srcdir (or $srcdir), the source tree.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
python=${SL_PEER_PYTHON:-python3}
source=${karate%/examples/karate}
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
"$python" -c 'import safetensors.numpy, torch_geometric.nn' >/dev/null 2>&1 || {
    echo "skip  $python has no torch_geometric and safetensors: SL_PEER_PYTHON names an interpreter"
    exit 77
}

pyg() {
    timeout 120 "$python" "$source/contrib/pyg.py" "$@" </dev/null || die "pyg.py $*: exit status $?"
}

# refuses WORDS ARGUMENT ...: the script must fail, and say so.
refuses() {
    words=$1
    shift
    timeout 120 "$python" "$source/contrib/pyg.py" "$@" >"$T/out" 2>"$T/err" </dev/null && die "pyg.py $*: not refused"
    grep -q "^pyg.py: .*$words" "$T/err" || die "pyg.py $*: no \"$words\" in: $(cat "$T/err")"
}

# ---- Datasets ----

# `plain` is undirected and has dense features. `full` is directed, with weights, loops, CSR features and vertices that
# have no neighbours, or are no neighbour. Weights of 3 tell maxima of weighted rows from weighted maxima.
make_datasets() {
    "$python" - "$T" <<'END'
import json, os, sys
import numpy as np

def write(name, adjacency, arrays, meta):
    directory = os.path.join(sys.argv[1], name)
    os.mkdir(directory)
    n = len(adjacency)
    arrays = dict(arrays, indptr=np.append(0, adjacency.sum(1).cumsum()),
                  indices=np.repeat(np.arange(n * n) % n, np.ravel(adjacency)).astype(np.int32),
                  labels=random.integers(0, 3, n).astype(np.int32), train_idx=np.arange(0, 40),
                  val_idx=np.arange(40, 50), test_idx=np.arange(50, n))
    for key, array in arrays.items():
        np.save(os.path.join(directory, key + ".npy"), array)
    with open(os.path.join(directory, "meta.json"), "w") as file:
        json.dump(dict(meta, name=name, classes=3), file)

random = np.random.default_rng(1)
n, f = 60, 7
a = np.triu(random.random((n, n)) < 0.1, 1)
write("plain", a | a.T, {"features": random.normal(size=(n, f)).astype(np.float32)}, {})
a = random.random((n, n)) < 0.1
a |= np.diag(random.random(n) < 0.3)
a[7] = a[:, 7] = a[9] = a[:, 11] = False
x = np.where(random.random((n, f)) < 0.5, random.normal(size=(n, f)), 0).astype(np.float32)
x[5] = 0
# loops would tell Starling's A + I from PyG's, which has one loop of each vertex
b = random.random((n, n)) < 0.1
np.fill_diagonal(b, False)
b[9] = False
write("edges", b, {"features": random.normal(size=(n, f)).astype(np.float32),
                   "edge_features": random.normal(size=(b.sum(), 4)).astype(np.float32)}, {})
# several relations between two vertices, several loops of a vertex, a relation without edges, one of few rows, long rows
kinds = random.random((5, n, n)) < np.array([0.06, 0.03, 0.05, 0, 0.002])[:, None, None]
kinds[[0, 1, 2], 6, 6] = kinds[[0, 2, 4], 2, 5] = kinds[4, 3, :50] = kinds[:, 20, :58] = kinds[:, 41, 2:] = True
kinds[:, 9] = False
write("relations", kinds.sum(0), {"features": random.normal(size=(n, f)).astype(np.float32),
                                  "edge_types": np.nonzero(kinds.transpose(1, 2, 0))[2].astype(np.int32)}, {"relations": 6})
write("full", a, {"weights": random.choice([0.3, 1, 3], a.sum()).astype(np.float32),
                  "features_indptr": np.append(0, (x != 0).sum(1).cumsum()),
                  "features_indices": np.nonzero(x)[1].astype(np.int32),
                  "features_data": x[x != 0]}, {"features": {"count": f}})
END
}

# ---- Models ----

# A model of Starling's in $T/ck. Logits: $T/ours.npy by Starling, $T/theirs.npy by PyG.
export_model() { # DATASET OPTION ...
    dataset=$1
    shift
    rm -f "$T/ours.npy" "$T/theirs.npy"
    exits 0 train "$dataset" --epochs 60 --lr 0.02 --dropout 0 --checkpoint "$T/ck" --quiet "$@"
    exits 0 predict "$T/ck" "$dataset" --logits "$T/ours.npy" --quiet
    pyg logits "$T/ck" "$dataset" "$T/theirs.npy"
}

# A model of PyG's in $T/pyg.ck, and the same logits.
import_model() { # DATASET OPTION ...
    dataset=$1
    shift
    rm -f "$T/ours.npy" "$T/theirs.npy"
    pyg train "$dataset" "$T/pyg.ck" "$T/theirs.npy" --epochs 60 "$@"
    exits 0 predict "$T/pyg.ck" "$dataset" --logits "$T/ours.npy" --quiet
}

exported() {
    export_model "$@"
    pyg compare "$T/ours.npy" "$T/theirs.npy"
}

imported() {
    import_model "$@"
    pyg compare "$T/ours.npy" "$T/theirs.npy"
}

both_ways() { # DATASET OPTION ...
    words="${1##*/} $(shift && echo "$*")"
    check "to PyG: $words" exported "$@"
    check "from PyG: $words" imported "$@"
}

# Scores of pairs by a model of links, in Starling and in PyG: the best epoch's.
scored() { # DATASET OPTION ...
    dataset=$1
    shift
    rm -rf "$T/links"
    exits 0 convert "$dataset" "$T/links" --split-edges 80/10/10 --quiet
    "$python" -c 'import sys, numpy; numpy.save(sys.argv[1], numpy.random.default_rng(1).integers(0, 34, (300, 2)))' "$T/pairs.npy"
    exits 0 train "$T/links" --task links --epochs 60 --lr 0.02 --keep best --checkpoint "$T/ck" --quiet "$@"
    exits 0 predict "$T/ck" "$T/links" --links "$T/pairs.npy" --output "$T/ours.npy" --quiet
    pyg scores "$T/ck" "$T/links" "$T/pairs.npy" "$T/theirs.npy"
    pyg compare "$T/ours.npy" "$T/theirs.npy"
}

# The best epoch's weights, not the last one's.
best_exported() {
    exported "$T/full" --model sage --epochs 80 --patience 5
    grep -q '[.]best"' "$T/ck" || die "the checkpoint has no best weights"
}

# Any order of the dataset has the same logits, also where the input is the identity.
reordered() {
    exits 0 convert "$karate" "$T/other-order" --order random --quiet
    exported "$T/other-order" --model gcn
    pyg logits "$T/ck" "$karate" "$T/theirs.npy"
    pyg compare "$T/ours.npy" "$T/theirs.npy"
}

# Training starts from PyG's weights. A note says that the optimizer's state starts from 0.
trained_on() {
    import_model "$T/full" --model sage --aggregator max
    exits 0 train "$T/full" --resume "$T/pyg.ck" --epochs 61 --lr 0 --dropout 0 --checkpoint "$T/ck"
    grep -q 'no state of an optimizer' "$T/err" || die "no note: $(cat "$T/err")"
    exits 0 predict "$T/ck" "$T/full" --logits "$T/ours.npy" --quiet
    pyg compare "$T/ours.npy" "$T/theirs.npy"
}

# ---- What must be seen ----

# Logits that differ, are constant or are not numbers are no success.
unequal_logits() {
    "$python" - "$T" <<'END'
import sys
import numpy as np
logits = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
near, far, broken = (logits.copy() for _ in range(3))
near[59, 2] += 5e-5
far[59, 2] += 2e-4
broken[59, 2] = np.nan
for name, array in {"logits": logits, "near": near, "far": far, "broken": broken, "short": logits[:59],
                    "constant": logits[:1] + 0 * logits}.items():
    np.save(f"{sys.argv[1]}/{name}.npy", array)
END
    pyg compare "$T/logits.npy" "$T/near.npy"
    refuses "difference of at most" compare "$T/logits.npy" "$T/far.npy"
    refuses shapes compare "$T/logits.npy" "$T/short.npy"
    refuses "not finite" compare "$T/broken.npy" "$T/broken.npy"
    refuses spread compare "$T/constant.npy" "$T/constant.npy"
}

# The two weights of GraphSAGE, exchanged; a bias that is left out; and a tensor that nobody knows.
wrong_tensors() {
    export_model "$T/full" --model sage --bias --keep last
    for change in exchanged no-bias unknown; do
        "$python" - "$T/ck" "$T/$change.ck" $change <<'END'
import sys
import safetensors
from safetensors.numpy import save_file
with safetensors.safe_open(sys.argv[1], "np") as file:
    metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}
one, other, bias = ("layer.1." + name for name in ("lin_l.weight", "lin_r.weight", "lin_l.bias"))
if sys.argv[3] == "exchanged":
    tensors[one], tensors[other] = tensors[other], tensors[one]
elif sys.argv[3] == "no-bias":
    del tensors[bias]
else:
    tensors["layer.1.att_src"] = tensors[bias]
del metadata["crc32"]
save_file(tensors, sys.argv[2], metadata)
END
    done
    pyg logits "$T/exchanged.ck" "$T/full" "$T/theirs.npy"
    refuses "difference of at most" compare "$T/ours.npy" "$T/theirs.npy"
    exits 0 predict "$T/exchanged.ck" "$T/full" --logits "$T/ours.npy" --quiet
    pyg compare "$T/ours.npy" "$T/theirs.npy"
    refuses "no tensor layer.1.lin_l.bias" logits "$T/no-bias.ck" "$T/full" "$T/theirs.npy"
    refuses layer.1.att_src logits "$T/unknown.ck" "$T/full" "$T/theirs.npy"
    "$python" -c 'import numpy, safetensors.numpy as s; s.save_file({"w": numpy.ones(2)}, "'"$T/foreign.ck"'")'
    refuses "no checkpoint" logits "$T/foreign.ck" "$T/full" "$T/theirs.npy"
    exits 1 predict "$T/no-bias.ck" "$T/full" --logits "$T/ours.npy" --quiet
    sentence layer.1.lin_l.bias "$T/err"
}

check "datasets" make_datasets
for model in "gcn" "gcn --norm row" "sage --aggregator gcn" "sage --aggregator mean" "sage --aggregator sum" \
    "sage --aggregator max" "sage --aggregator min"; do
    both_ways "$T/full" --model $model --layers 3 --hidden 16 --bias
done
for model in "gcn" "sage --aggregator gcn" "sage --aggregator max"; do
    both_ways "$T/plain" --model $model --layers 2 --hidden 16 --no-bias
done
for model in "gat --heads 3 --out-heads 3 --layers 3" "gat --heads 1 --layers 2 --no-bias" "gat --heads 2 --out-heads 2 --layers 1"; do
    both_ways "$T/plain" --model $model --hidden 5
done
both_ways "$karate" --model gat --heads 8 --out-heads 8 --hidden 8
for model in "gatv2 --heads 3 --out-heads 3 --layers 3" "gatv2 --heads 1 --layers 2 --no-bias" "gatv2 --heads 2 --out-heads 2 --layers 1" \
    "transformer --heads 3 --layers 3" "transformer --heads 1 --layers 1" \
    "transformer --heads 2 --layers 2 --no-bias"; do
    both_ways "$T/plain" --model $model --hidden 5
done
for model in "gat --heads 3 --out-heads 3 --layers 3" "gat --heads 1 --layers 1 --no-bias" \
    "gatv2 --heads 3 --out-heads 3 --layers 3" "gatv2 --heads 1 --layers 1 --no-bias" \
    "transformer --heads 3 --layers 3" "transformer --heads 1 --layers 1 --no-bias" "gine --encoder none --layers 3" \
    "gine --encoder none --layers 1"; do
    both_ways "$T/edges" --model $model --hidden 5
done
for model in "rgcn --layers 3" "rgcn --layers 1 --no-bias" "rgcn --layers 2 --hidden 33"; do
    both_ways "$T/relations" --hidden 5 --model $model
done
both_ways "$T/full" --model gcn --layers 1 --normalize-features l2
both_ways "$T/plain" --model sage --layers 4 --normalize-features l1
both_ways "$karate" --model sage --aggregator max
for decoder in dot distmult mlp; do
    check "to PyG: links, gcn, $decoder" scored "$T/plain" --model gcn --hidden 12 --embedding 7 --decoder $decoder
    check "to PyG: links, sage, $decoder" scored "$T/full" --model sage --hidden 12 --decoder $decoder --lr 0.05
done
check "to PyG: links, gat, dot" scored "$T/plain" --model gat --heads 2 --out-heads 2 --hidden 6
check "to PyG: the best weights" best_exported
check "to PyG: another order of the vertices" reordered
check "from PyG: --resume" trained_on
check "unequal logits are seen" unequal_logits
check "wrong tensors are seen" wrong_tensors
finish
