#!/bin/sh
# Several labels per vertex, and numbers: what starling train and predict say and write of them, and which options they
# refuse. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1

# refused STATUS TEXT ARGUMENT ...: one sentence on stderr, which holds TEXT.
refused() {
    wanted=$1 text=$2
    shift 2
    exits "$wanted" "$@"
    sentence "$text" "$T/err"
}

# ---- Datasets: karate with other labels ----

VERTICES=34

# dataset NAME META COLUMNS AWK: AWK sets y[1] … y[COLUMNS] of vertex v, each one of 0, 1, 0.5, -2.5 and nan.
dataset() {
    mkdir "$T/$1"
    cp "$karate"/*.npy "$T/$1"
    printf '%s\n' "$2" >"$T/$1/meta.json"
    awk -v n=$VERTICES -v c="$3" "BEGIN { for (v = 0; v < n; v++) { $4 for (j = 1; j <= c; j++) print v, j, y[j] } }" \
        >"$T/$1.values"
    npy "$T/$1/labels.npy" '<f4' "($VERTICES, $3)" "$(awk '
        BEGIN { of["0"] = "\\000\\000\\000\\000"; of["1"] = "\\000\\000\\200\\077"; of["0.5"] = "\\000\\000\\000\\077"
                of["-2.5"] = "\\000\\000\\040\\300"; of["nan"] = "\\000\\000\\300\\177" }
        { printf "%s", of[$3] }' "$T/$1.values")"
}

# Every fifth vertex has none of its three labels; of vertex 7 one is not known, of vertex 8 none is.
dataset several '{"nodes": 34, "multilabel": true, "class_names": ["even", "third", "large one"]}' 3 '
    y[1] = v % 5 && v % 2 == 0 ? 1 : 0; y[2] = v % 5 && v % 3 == 0 ? 1 : 0; y[3] = v % 5 && v > 16 ? 1 : 0
    if (v == 7) y[2] = "nan"; if (v == 8) y[1] = y[2] = y[3] = "nan";'
dataset numbers '{"nodes": 34, "regression": true}' 2 '
    y[1] = v % 2 ? 0.5 : -2.5; y[2] = v == 9 ? "nan" : v % 3 == 0 ? 1 : 0;'
dataset alike '{"nodes": 34, "multilabel": true}' 2 'y[1] = 1; y[2] = 0;'

# split_of SPLIT: its vertices, a line each.
split_of() {
    od -An -v -t d8 -w8 -j128 "$karate/$1_idx.npy" | tr -d ' '
}

whole_numbers() { # FILE
    od -An -v -t d4 -w4 -j128 "$1" | tr -d ' '
}

shape() { # FILE
    head -c 128 "$1" | tr -d '\0' | sed -n "s/.*'descr': '\([^']*\)'.*'shape': (\([^)]*\)).*/\1 \2/p"
}

# The number after WORDS in the closing table of a training.
table() {
    sed -n "s/^  $1  *//p" "$T/trained"
}

# trained DATASET ARGUMENT ...: the model is in $T/ck, the table in $T/trained.
trained() {
    data=$T/$1
    shift
    exits 0 train "$data" --seed 3 --checkpoint "$T/ck" "$@"
    cp "$T/out" "$T/trained"
}

# same_scores METRIC: predict says of each split what the training has said.
same_scores() {
    printf '%s: training %s, validation %s, test %s\n' "$1" "$(table "training $1")" "$(table "validation $1")" \
        "$(table "test $1")" >"$T/wanted"
    grep -q 'training [01]\.[0-9]*, .*test [0-9]' "$T/wanted" || die "no $1 in: $(cat "$T/trained")"
    diff "$T/wanted" "$T/out" || die "other scores than those of the training"
}

# ---- Cases ----

# Micro-F1 of the labels that are written is the training's.
several_labels() {
    trained several --metric micro-f1 --epochs 120 --lr 0.05 --dropout 0
    exits 0 predict "$T/ck" "$T/several" --output "$T/p.npy" --table "$T/p.tsv" --logits "$T/z.npy"
    same_scores micro-f1
    [ "$(shape "$T/p.npy")" = "<i4 34, 3" ] || die "labels are $(shape "$T/p.npy")"
    whole_numbers "$T/p.npy" >"$T/p"
    numbers "$T/z.npy" | awk '{ print ($1 > 0) }' | diff - "$T/p" || die "labels that logits do not say"
    for split in train test; do
        split_of $split >"$T/split"
        paste -d ' ' "$T/several.values" "$T/p" | awk '
            NR == FNR { here[$1] = 1; next }
            $1 in here && $3 != "nan" { both += $3 && $4; either += $3 + $4 }
            END { printf "%.4f\n", 2 * both / either }' "$T/split" - >"$T/f1"
        name=$split
        [ $split = test ] || name=training
        [ "$(cat "$T/f1")" = "$(table "$name micro-f1")" ] || die "micro-F1 is $(cat "$T/f1"), not $(table "$name micro-f1")"
    done
}

# A line has its id, the numbers of its labels and their names; vertices without a label have them empty.
several_in_a_table() {
    trained several --epochs 120 --lr 0.05 --dropout 0
    exits 0 predict "$T/ck" "$T/several" --output "$T/p.npy" --table "$T/p.tsv"
    whole_numbers "$T/p.npy" | paste -d ' ' - - - | awk '
        BEGIN { name[1] = "even"; name[2] = "third"; name[3] = "large one" }
        { ids = names = comma = ""
          for (j = 1; j <= 3; j++) if ($j) { ids = ids comma j - 1; names = names comma name[j]; comma = "," }
          printf "%d\t%s\t%s\n", NR - 1, ids, names }' | diff - "$T/p.tsv" || die "another table"
    grep -q "^[0-9]*	1,2	third,large one$" "$T/p.tsv" || die "no vertex has two labels: $(cat "$T/p.tsv")"
    grep -q "^[0-9]*		$" "$T/p.tsv" || die "no vertex is without labels: $(cat "$T/p.tsv")"
}

# The model keeps its decision: its scores are the training's.
decided_by_top() {
    trained several --decision top --epochs 30
    exits 0 predict "$T/ck" "$T/several" --output "$T/p.npy"
    same_scores micro-f1
}

# The error of the numbers that are written is the training's.
numbers_to_predict() {
    trained numbers --epochs 60 --lr 0.05 --dropout 0
    exits 0 predict "$T/ck" "$T/numbers" --output "$T/p.npy" --table "$T/p.tsv" --logits "$T/z.npy"
    same_scores loss
    [ "$(shape "$T/p.npy")" = "<f4 34, 2" ] || die "numbers are $(shape "$T/p.npy")"
    cmp "$T/p.npy" "$T/z.npy" || die "numbers are not the outputs"
    split_of test >"$T/split"
    numbers "$T/p.npy" | paste -d ' ' "$T/numbers.values" - | awk '
        NR == FNR { here[$1] = 1; rows++; next }
        $1 in here && $3 != "nan" { sum += ($3 - $4) ^ 2 / 2 }
        END { print sum / rows }' "$T/split" - >"$T/error"
    table "test loss" >"$T/said"
    close_to "$T/error" "$T/said"
    awk -F '\t' '{ if (NF != 3 || $1 != NR - 1) exit 1; print $2; print $3 }' "$T/p.tsv" >"$T/listed" || die "another table"
    numbers "$T/p.npy" >"$T/p"
    close_to "$T/listed" "$T/p"
}

# Of vertices without labels all is predicted, and nothing is measured.
without_labels() {
    trained several --epochs 5
    cp -r "$T/several" "$T/bare"
    rm "$T/bare/labels.npy"
    echo '{"nodes": 34}' >"$T/bare/meta.json"
    exits 0 predict "$T/ck" "$T/several" --output "$T/p.npy"
    exits 0 predict "$T/ck" "$T/bare" --output "$T/q.npy"
    grep -qx 'loss: training -, validation -, test -' "$T/out" || die "$(cat "$T/out")"
    cmp "$T/p.npy" "$T/q.npy" || die "other labels"
}

# A label that all have has no area under its curve: no epoch is the best one.
not_defined() {
    exits 0 train "$T/alike" --metric roc-auc --patience 5
    grep -qx 'stopped early after epoch 5: validation roc-auc is not defined' "$T/out" || die "$(cat "$T/out")"
    ! grep -q 'best one' "$T/out" || die "$(cat "$T/out")"
}

losses_and_labels() {
    refused 2 "--loss cross-entropy: $T/several has several labels per vertex (expected --loss sigmoid, or auto)" \
        train "$T/several" --loss cross-entropy
    for loss in cross-entropy sigmoid; do
        refused 2 "--loss $loss: $T/numbers has numbers to predict (expected --loss mse, or auto)" \
            train "$T/numbers" --loss $loss
    done
    refused 2 "--loss cross-entropy: $T/several has several labels" plan "$T/several" --ranks 2 --loss cross-entropy
}

# What the model has learnt is not what the dataset has: the sentence names the checkpoint.
models_and_labels() {
    exits 0 train "$karate" --epochs 2 --checkpoint "$T/classes"
    exits 0 train "$T/alike" --epochs 2 --checkpoint "$T/labels"
    refused 1 "$T/classes: the model was trained with --loss cross-entropy, and $T/alike has several labels per vertex" \
        predict "$T/classes" "$T/alike"
    for model in classes labels; do
        refused 1 "$T/$model: the model was trained with --loss " predict "$T/$model" "$T/numbers"
        sentence "and $T/numbers has numbers to predict" "$T/err"
    done
    refused 1 "$T/labels: the model knows 2 classes, and $T/several has labels of 3" \
        predict "$T/labels" "$T/several"
}

# Nothing that is asked for is left out without a word.
losses_and_options() {
    for data in "$T/several" "$karate"; do
        refused 2 "--class-weights balanced: --loss mse has no weights of classes (expected none)" \
            train "$data" --loss mse --class-weights balanced
        refused 2 "--label-smoothing 0.1: --loss mse has no smooth labels (expected 0)" \
            train "$data" --loss mse --label-smoothing 0.1
        refused 2 "--decision top: this run has --loss mse (expected --loss sigmoid)" \
            train "$data" --loss mse --decision top
        refused 2 "--metric roc-auc: is not defined for --loss mse" train "$data" --loss mse --metric roc-auc
        refused 2 "--decision top: this run has --metric loss (expected micro-f1, macro-f1 or label-accuracy)" \
            train "$data" --loss sigmoid --metric loss --decision top
    done
    refused 2 "--decision top: this run has --loss cross-entropy (expected --loss sigmoid)" train "$karate" --decision top
    refused 2 "--metric label-accuracy: is not defined for --loss cross-entropy on $karate, which has a class per vertex" \
        train "$karate" --metric label-accuracy
    for metric in accuracy micro-f1 macro-f1 label-accuracy roc-auc average-precision; do
        refused 2 "--metric $metric: is not defined for --loss mse on $T/numbers, which has numbers to predict" \
            train "$T/numbers" --metric $metric
    done
    refused 2 "--class-weights balanced: --loss mse has no weights of classes" train "$T/numbers" --class-weights balanced
    refused 2 "--label-smoothing" train "$karate" --label-smoothing 1
    refused 2 "--label-smoothing" train "$karate" --label-smoothing -0.1
}

check "several labels: predictions are what was measured" several_labels
check "several labels in a table" several_in_a_table
check "several labels: decided by top" decided_by_top
check "numbers: predictions are what was measured" numbers_to_predict
check "several labels of a dataset without labels" without_labels
check "a metric that is not defined" not_defined
check "losses and labels that do not go together" losses_and_labels
check "models and labels that do not go together" models_and_labels
check "losses and options that do not go together" losses_and_options
finish
