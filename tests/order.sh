#!/bin/sh
# The order of the vertices in memory shows in no output: losses, predictions, checkpoints. One line per case.
# Wants $STARLING, the program, and $top_srcdir (or $srcdir), the source tree with examples/karate; $MPIRUN for ranks.
# Sums in another order are rounded otherwise: numbers are close, classes the same. Dropout follows the vertices.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
orders='degree rcm rabbit metis random'

# train NAME DATASET OPTION ...: log and checkpoint in $T/NAME.*
train() {
    name=$1
    shift
    exits 0 train --epochs 30 --tiles 3 --dropout 0 "$@" --log "$T/$name.log" --checkpoint "$T/$name.ck" --quiet
    sed -n 's/.*"loss":\([^",}][^",}]*\).*/\1/p' "$T/$name.log" >"$T/$name.losses"
}

# predict NAME CHECKPOINT DATASET: classes, embeddings and logits of every vertex.
predict() {
    exits 0 predict "$T/$2.ck" "$3" --output "$T/$1.classes" --embeddings "$T/$1.embeddings" --logits "$T/$1.logits" \
        --quiet
    for kind in embeddings logits; do
        numbers "$T/$1.$kind" >"$T/$1.$kind.text"
    done
}

same_predictions() { # NAME NAME
    cmp "$T/$1.classes" "$T/$2.classes" || die "other classes"
    close_to "$T/$1.embeddings.text" "$T/$2.embeddings.text"
    close_to "$T/$1.logits.text" "$T/$2.logits.text"
}

# ---- Training in another order ----

any_order() { # DATASET OPTION ...
    dataset=$1
    shift
    train none "$dataset" "$@"
    predict none none "$dataset"
    for order in $orders double; do
        train "$order" "$dataset" --order "$order" "$@"
        close_to "$T/none.losses" "$T/$order.losses"
        predict "$order" "$order" "$dataset"
        same_predictions none "$order"
    done
}

resumed_without() {
    train whole "$karate"
    exits 0 train "$karate" --epochs 15 --tiles 3 --dropout 0 --order random --checkpoint "$T/half.ck" --quiet
    train half "$karate" --resume "$T/half.ck"
    tail -n 15 "$T/whole.losses" >"$T/whole.end"
    tail -n 15 "$T/half.losses" >"$T/half.end"
    close_to "$T/whole.end" "$T/half.end"
}

other_ranks() {
    [ -n "$MPIRUN" ] || skip "no MPI"
    train alone "$karate" --order rabbit
    timeout 60 "$MPIRUN" -n 2 "$STARLING" train "$karate" --order rabbit --epochs 30 --tiles 3 --dropout 0 --distribution 1d \
        --log "$T/two.log" --quiet </dev/null || die "exit status $?"
    sed -n 's/.*"loss":\([^",}][^",}]*\).*/\1/p' "$T/two.log" | cmp - "$T/alone.losses" || die "other losses"
}

# In 1D, --order auto looks at random order, and counts the stages that training has. Grids that are chosen, or not 1D, have none.
random_considered() {
    [ -n "$MPIRUN" ] || skip "no MPI"
    for options in "--distribution 1d" "--grid 3x1x1" "--grid 1x1x3" "--distribution auto"; do
        # shellcheck disable=SC2086
        timeout 60 "$MPIRUN" -n 3 "$STARLING" train "$karate" --epochs 2 $options --log "$T/auto.log" --quiet </dev/null ||
            die "exit status $?"
        reason=$(sed -n 's/.*"order_reason":"none: stages of 1d take \([0-9.]*\) times .* in random order 1.0[0-9];.*/\1/p' "$T/auto.log")
        case $options in
        *1d | *3x1x1)
            stages=$(sed -n 's/.*"stages":\([0-9.]*\),"worst_stage".*/\1/p' "$T/auto.log")
            awk "BEGIN { d = ${reason:-0} - $stages; exit !($stages > 1.01 && -0.006 < d && d < 0.006) }" ||
                die "$options: stages $reason, and $stages in training: $(head -n 1 "$T/auto.log")"
            ;;
        *) [ -z "$reason" ] || die "$options: looks at random order" ;;
        esac
    done
}

# ---- Datasets stored in another order ----

stored() { # NAME DATASET
    train plain "$2"
    predict plain plain "$2"
    for order in $orders; do
        exits 0 convert "$2" "$T/$1-$order" --order "$order" --seed 3
        grep -q ', ordered ' "$T/out" || die "nothing about an order: $(cat "$T/out")"
        predict stored plain "$T/$1-$order"
        same_predictions plain stored
        train stored "$T/$1-$order"
        close_to "$T/plain.losses" "$T/stored.losses"
    done
}

converted_again() {
    exits 0 convert "$karate" "$T/once" --order random
    exits 0 convert "$T/once" "$T/copy"
    cmp "$T/once/original_ids.npy" "$T/copy/original_ids.npy" || die "a copy lost the original numbers"
    exits 0 convert "$T/once" "$T/twice" --order rcm
    train plain "$karate"
    predict plain plain "$karate"
    predict twice plain "$T/twice"
    same_predictions plain twice
    exits 0 convert "$karate" "$T/unordered"
    [ ! -e "$T/unordered/original_ids.npy" ] || die "original numbers without an order"
}

told() {
    exits 0 convert "$karate" "$T/told" --order degree
    exits 0 info "$T/told"
    grep -q '^order .*original_ids.npy' "$T/out" || die "starling info says nothing: $(cat "$T/out")"
    exits 0 info "$karate"
    ! grep -q '^order' "$T/out" || die "starling info tells an order: $(cat "$T/out")"
}

refused() { # ARGUMENT ...
    exits 2 "$@" --order alphabetical
    grep -q 'rabbit.*alphabetical' "$T/err" || die "not the sentence: $(cat "$T/err")"
}

# Two orders at a time are for training: a dataset has its vertices in one.
refused_double() {
    exits 2 convert "$karate" "$T/refused" --order double
    grep -q 'double' "$T/err" && [ ! -e "$T/refused" ] || die "not the sentence: $(cat "$T/err")"
}

exits 0 generate community "$T/dense" --vertices 3000 --degree 8 --classes 5 --features 12 --quiet

check 'identity features, every order' any_order "$karate"
check 'dense features, every order' any_order "$T/dense" --hidden 8
check 'dropout' any_order "$T/dense" --hidden 8 --dropout 0.5
check 'three layers, row norm' any_order "$T/dense" --layers 3 --hidden 16 --norm row
check 'resumed without the order' resumed_without
check 'two ranks' other_ranks
check 'random order in 1D is looked at' random_considered
check 'identity features, stored' stored identity "$karate"
check 'dense features, stored' stored dense "$T/dense"
check 'converted again' converted_again
check 'starling info tells' told
check 'unknown order of train' refused train "$karate"
check 'unknown order of convert' refused convert "$karate" "$T/refused"
check 'two orders of convert' refused_double
finish
