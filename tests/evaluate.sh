#!/bin/sh
# Scores of starling evaluate, beside those of the predictions. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
command -v python3 >/dev/null 2>&1 || { echo "no python3 to count predictions"; exit 77; }

models() {
    "$STARLING" generate community "$T/graph" --vertices 700 --classes 5 --degree 6 --features 4 --homophily 0.4 >"$T/out" || exit 1
    cd "$T" || exit 1
    "$STARLING" train graph --epochs 12 --hidden 8 --keep last --checkpoint ck --quiet || die "no model"
}

# counted RANKS OPTION ...: the confusion matrix and all scores, counted from classes and splits.
counted() {
    cd "$T" || exit 1
    run "$@" --json scores.json || die "$(cat err)"
    shift
    "$STARLING" predict ck graph --output classes.npy --quiet || die "no predictions"
    python3 - <<'PYTHON' || die "other scores"
import ast, json, struct
def array(path):
    data = open(path, "rb").read()
    size = struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10:10 + size].decode())
    kind = {"<i4": "i", "<i8": "q"}[head["descr"]]
    return [v for (v,) in struct.iter_unpack("<" + kind, data[10 + size:])]
found = json.load(open("scores.json"))
predicted, labels = array("classes.npy"), array("graph/labels.npy")
classes = max(labels) + 1
for split in "train", "val", "test":
    ids = array(f"graph/{split}_idx.npy")
    want = [[0] * classes for _ in range(classes)]
    for v in ids:
        want[labels[v]][predicted[v]] += 1
    assert found["confusion"][split] == want, (split, found["confusion"][split], want)
    right = sum(want[c][c] for c in range(classes))
    assert abs(found["scores"]["accuracy"][split] - right / len(ids)) < 1e-12
    assert abs(found["scores"]["micro-f1"][split] - right / len(ids)) < 1e-12
    f1 = []
    for c in range(classes):
        row, column = sum(want[c]), sum(r[c] for r in want)
        scores = found["classes"][split][c]
        assert scores["vertices"] == row
        for name, part, whole in ("precision", want[c][c], column), ("recall", want[c][c], row), ("f1", 2 * want[c][c], row + column):
            assert scores[name] == part / whole if whole else scores[name] is None, (c, name, scores)
        if row + column:
            f1.append(2 * want[c][c] / (row + column))
    assert abs(found["scores"]["macro-f1"][split] - sum(f1) / len(f1)) < 1e-12
PYTHON
}

# same_predictions MODEL RANKS OPTION ...: logits and embeddings are those of one rank.
same_predictions() {
    cd "$T" || exit 1
    model=$1
    shift
    "$STARLING" train graph --model "$model" --epochs 4 --hidden 8 --checkpoint same --quiet || die "no model"
    "$STARLING" predict same graph --logits z1.npy --embeddings h1.npy --quiet || die "no predictions"
    ranks=$1
    shift
    run "$ranks" predict same graph --logits z2.npy --embeddings h2.npy --quiet "$@" || die "$(cat err)"
    python3 - <<'PYTHON' || die "other predictions"
import struct
def array(path):
    data = open(path, "rb").read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return data[10:start], [v for (v,) in struct.iter_unpack("<f", data[start:])]
for name in "z", "h":
    (head, one), (other, several) = array(f"{name}1.npy"), array(f"{name}2.npy")
    assert head == other and len(one) == len(several) and any(one), (head, other)
    assert all(abs(a - b) <= 1e-4 * (1 + abs(a)) for a, b in zip(one, several)), name
PYTHON
}

# Two columns of labels, which the classes say: several labels of a vertex, or numbers.
columns() {
    cd "$T" || exit 1
    for kind in multilabel regression; do
        cp -r graph $kind
        printf '{"nodes": 700, "%s": true}\n' $kind >$kind/meta.json
    done
    python3 - <<'PYTHON' || die "no labels"
import struct
data = open("graph/labels.npy", "rb").read()
start = 10 + struct.unpack("<H", data[8:10])[0]
width = (len(data) - start) // 700
labels = [v for (v,) in struct.iter_unpack({4: "<i", 8: "<q"}[width], data[start:])]
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (700, 2), }\n"
for kind in "multilabel", "regression":
    with open(f"{kind}/labels.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        file.write(b"".join(struct.pack("<2f", v % 2, v > 2) for v in labels))
PYTHON
}

# probabilities DATASET FUNCTION: they follow from the logits.
probabilities() {
    cd "$T" || exit 1
    "$STARLING" train "$1" --epochs 4 --hidden 8 --checkpoint likely --quiet || die "no model"
    "$STARLING" predict likely "$1" --logits z.npy --probabilities p.npy --quiet || die "no predictions"
    python3 - "$2" <<'PYTHON' || die "other probabilities"
import ast, math, struct, sys
def array(path):
    data = open(path, "rb").read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    columns = ast.literal_eval(data[10:start].decode())["shape"][1]
    values = [v for (v,) in struct.iter_unpack("<f", data[start:])]
    return [values[k:k + columns] for k in range(0, len(values), columns)]
def softmax(row):
    whole = sum(math.exp(v) for v in row)
    return [math.exp(v) / whole for v in row]
def sigmoid(row):
    return [1 / (1 + math.exp(-v)) for v in row]
logits, found = array("z.npy"), array("p.npy")
assert len(logits) == len(found) > 0
for row, given in zip(logits, found):
    assert all(abs(a - b) < 1e-5 for a, b in zip(vars()[sys.argv[1]](row), given)), (row, given)
PYTHON
}

# more_scores DATASET RANKS [OPTION]...: scores of several labels and of numbers, from the logits and labels.npy.
more_scores() {
    data=$1 ranks=$2
    shift 2
    cd "$T" || exit 1
    run "$ranks" train $data --epochs 20 --hidden 8 --keep last --checkpoint more.ck --log more.log --workers 1 "$@" >out || die "$(cat out)"
    "$STARLING" predict more.ck $data --logits z.npy --quiet || die "no predictions"
    run "$ranks" evaluate more.ck $data --json more.json --workers 1 "$@" >out 2>err || die "$(cat err)"
    python3 - $data <<'PYTHON' || die "other scores: $(cat out)"
import json, struct, sys
def numbers(path, kind):
    data = open(path, "rb").read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return [v for (v,) in struct.iter_unpack(kind, data[start:])]
def ratio(a, b):
    return a / b if b else 0.0
z, y = (list(zip(*[iter(numbers(path, "<f"))] * 2)) for path in ("z.npy", sys.argv[1] + "/labels.npy"))
found = json.load(open("more.json"))["scores"]
for split in "train", "val", "test":
    vertices = numbers(f"{sys.argv[1]}/{split}_idx.npy", "<q")
    scores = {"mae": [], "r2": [], "f1": [], "accuracy": []}
    true = both = 0
    for j in 0, 1:
        a, b = [y[v][j] for v in vertices], [z[v][j] for v in vertices]
        mean = sum(a) / len(a)
        scores["mae"].append(sum(abs(p - q) for p, q in zip(a, b)) / len(a))
        spread = sum((p - mean) ** 2 for p in a)
        scores["r2"].append(1 - sum((p - q) ** 2 for p, q in zip(a, b)) / spread)
        hits = sum(p == 1 and q > 0 for p, q in zip(a, b))
        all_of = sum(p == 1 for p in a) + sum(q > 0 for q in b)
        scores["f1"].append(ratio(2 * hits, all_of))
        scores["accuracy"].append(sum((p == 1) == (q > 0) for p, q in zip(a, b)) / len(a))
        true, both = true + 2 * hits, both + all_of
    wanted = {"mae": sum(scores["mae"]) / 2, "r2": sum(scores["r2"]) / 2}
    if sys.argv[1] == "multilabel":
        wanted = {"micro-f1": ratio(true, both), "macro-f1": sum(scores["f1"]) / 2,
                  "label-accuracy": sum(scores["accuracy"]) / 2}
    for name, value in wanted.items():
        assert abs(found[name][split] - value) < 1e-5 * (1 + abs(value)), (split, name, value, found[name])
epochs = [json.loads(line) for line in open("more.log") if '"epoch"' in line]
last = [e for e in epochs if e.get("epoch") == 20][0]
name = "micro-f1" if sys.argv[1] == "multilabel" else "r2"
for split in "train", "val", "test":
    shown = last[f"{split}_{name.replace('-', '_')}"]
    assert abs(shown - found[name][split]) < 1e-9, (split, shown, found[name])
PYTHON
    grep -qE '^(mae|micro-f1) +[0-9.]+ +[0-9.]+ +[0-9.]+$' out || die "$(cat out)"
    "$STARLING" train $data --epochs 2 --workers 1 >out || die "no model"
    shown=r2
    [ $data != multilabel ] || shown=micro-f1
    grep -qE '^epoch 2/2  loss [0-9.]+  training loss [0-9.]+  validation loss [0-9.]+  training '$shown' -?[0-9.]+  validation '$shown' -?[0-9.]+$' out ||
        die "no score while training: $(cat out)"
    grep -qE '^  test (r2|macro-f1) ' out || die "no scores after training: $(cat out)"
}

# The metric that training measures, by training's own way.
same_metric() {
    cd "$T" || exit 1
    "$STARLING" train graph --epochs 12 --hidden 8 --keep last --metric "$1" --checkpoint other --log log --quiet || die "no model"
    "$STARLING" evaluate other graph --json one.json --quiet || die "no scores"
    "$STARLING" evaluate ck graph --metric "$1" --json two.json --quiet || die "no scores"
    python3 - "$1" <<'PYTHON' || die "other scores"
import json, sys
name = sys.argv[1]
end = json.loads(open("log").readlines()[-1])
for path in "one.json", "two.json":
    scores = json.load(open(path))["scores"][name]
    for split in "train", "val", "test":
        assert abs(scores[split] - end[f"{split}_{name.replace('-', '_')}"]) < 1e-12, (path, split, scores)
PYTHON
}

# The weights of the best epoch are measured, whatever the metric, as predictions take them.
best_weights() {
    cd "$T" || exit 1
    "$STARLING" train graph --epochs 40 --eval-every 3 --lr 0.05 --hidden 8 --checkpoint best --log log --quiet || die "no model"
    tail -n 1 log | grep -qE '"best_epoch":([0-9]+),"kept_epoch":\1,"epochs":40' || die "$(tail -n 1 log)"
    ! grep -q '"kept_epoch":40,' log || die "the last epoch is the best one"
    wanted=$(tail -n 1 log | grep -oE '"test_accuracy":[0-9.]+')
    for metric in auto accuracy micro-f1 macro-f1 average-precision roc-auc loss; do
        "$STARLING" evaluate best graph --metric $metric --json $metric.json --quiet || die "no scores"
        python3 - $metric.json "${wanted#*:}" <<'PYTHON' || die "--metric $metric: other weights"
import json, sys
found = json.load(open(sys.argv[1]))["scores"]["accuracy"]["test"]
assert abs(found - float(sys.argv[2])) < 1e-12, (found, sys.argv[2])
PYTHON
    done
}

# Of a graph that the model has not seen.
other_graph() {
    cd "$T" || exit 1
    "$STARLING" generate community new --vertices 300 --classes 5 --degree 6 --features 4 --homophily 0.4 --seed 7 >out || exit 1
    "$STARLING" evaluate ck new >out || die "no scores"
    grep -qE '^accuracy +[01]\.[0-9]{4} +[01]\.[0-9]{4} +[01]\.[0-9]{4}$' out || die "$(cat out)"
    [ "$(grep -cE '^[0-4] +[0-9]+ ' out)" -eq 5 ] || die "not five classes: $(cat out)"
    cp -r new named
    printf '{"nodes": 300, "class_names": ["oak", "elm", "ash", "a beech", "fir"]}\n' >named/meta.json
    "$STARLING" evaluate ck named --json scores.json >other || die "no scores"
    sed -n 's/^\([a-z ]*[a-z]\)  *[0-9]* .*/\1/p' other | tail -n 5 | tr '\n' , | grep -q '^oak,elm,ash,a beech,fir,$' ||
        die "other names: $(cat other)"
    grep -q '"name": "a beech"' scores.json || die "no name: $(cat scores.json)"
}

refuses() {
    cd "$T" || exit 1
    cp -r graph bare
    rm bare/labels.npy bare/*_idx.npy
    "$STARLING" evaluate ck bare 2>err && die "scores without labels"
    grep -q 'bare: there are no labels' err || die "$(cat err)"
    "$STARLING" train regression --epochs 2 --checkpoint numbers --quiet || die "no model"
    "$STARLING" predict numbers regression --probabilities p.npy 2>err && die "probabilities of numbers"
    grep -q -- '--probabilities: the model predicts numbers' err || die "$(cat err)"
    "$STARLING" evaluate ck graph --json nowhere/x 2>err && die "no file, no error"
    grep -q 'nowhere/x' err || die "$(cat err)"
}

check "a model" models
check "one rank" counted 1 evaluate ck graph
check "two ranks" counted 2 evaluate ck graph --tiles 5
check "three ranks, halo" counted 3 evaluate ck graph --distribution halo
check "four ranks, 2d" counted 4 evaluate ck graph --distribution 2d
check "three ranks, vertex-cut" counted 3 evaluate ck graph --distribution vertex-cut
for model in gcn sage gat; do
    check "predictions of $model, vertex-cut" same_predictions "$model" 3 --distribution vertex-cut
done
check "predictions of gin, cover" same_predictions gin 2 --distribution cover --tiles 3
check "columns of labels" columns
check "probabilities of a class" probabilities graph softmax
check "probabilities of several labels" probabilities multilabel sigmoid
check "several labels" more_scores multilabel 1
check "numbers" more_scores regression 1 --tiles 3
check "numbers, two ranks, vertex-cut" more_scores regression 2 --distribution vertex-cut
check "macro F1 as in training" same_metric macro-f1
check "the area under the curve as in training" same_metric roc-auc
check "the best weights by every metric" best_weights
check "another graph" other_graph
check "what is refused" refuses
finish
