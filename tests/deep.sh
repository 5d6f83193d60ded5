#!/bin/sh
# Models that are lists of parts (resgcn, gin, sgc, appnp, jknet), as a user meets them: very deep ones, outputs that are made
# again, memory, bytes that travel, checkpoints, predictions and refusals. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="again memory memories predicted continued received_as_planned deepest less"
XDG_CACHE_HOME=$T/cache
export XDG_CACHE_HOME

data() {
    "$STARLING" generate community "$T/small" --vertices 400 --classes 4 --degree 6 --features 24 --seed 3 >"$T/out" &&
        "$STARLING" generate community "$T/large" --vertices 6000 --classes 4 --degree 8 --features 48 --seed 4 >"$T/out"
}

# All numbers of a log are finite, and the loss falls.
falls() { # FOLDER EPOCHS
    losses "$1" >"$T/one"
    [ "$(wc -l <"$T/one")" -eq "$2" ] || die "no $2 losses in $1"
    ! grep -qiE '"(loss|train_loss|[a-z]+_accuracy)":(null|-?nan|-?inf)' "$T/$1/log" || die "no number: $(cat "$T/$1/log")"
    awk '{ if (!($1 == $1 + 0) || $1 > 1e6) bad = 1; if (NR == 1) first = $1; last = $1 }
        END { print "loss", first, "to", last; exit bad || !(last < first) }' "$T/one" || die "losses: $(cat "$T/one")"
}

deepest() { # NORM RANKS OPTION ...
    norm=$1 ranks=$2
    shift 2
    train "deepest-$norm-$ranks" "$ranks" train "$T/small" --model resgcn --layers 112 --hidden 16 --block-norm "$norm" \
        --epochs 6 --eval-every 3 "$@"
    falls "deepest-$norm-$ranks" 6
}

# The tensors of a checkpoint, which come after the description.
tensors() { # FILE
    tail -c +$(($(od -An -t u8 -N 8 "$1") + 9)) "$1"
}

same_results() { # FOLDER FOLDER
    results "$T/$1/log" >"$T/one"
    results "$T/$2/log" >"$T/two"
    [ "$(wc -l <"$T/one")" -gt 12 ] || die "an empty log"
    diff "$T/one" "$T/two" || die "other losses in $2 than in $1"
    tensors "$T/$1/ck" >"$T/one"
    tensors "$T/$2/ck" | cmp - "$T/one" || die "other parameters in $2 than in $1"
}

# again NAME RANKS OPTION ...: the same bits, whatever is made again. Cases take turns at the blocks. Late messages do not come
# twice: with them, normalised rows alone are made again.
again() {
    name=$1 ranks=$2
    shift 2
    all='' long=2
    case " $* " in *" --delay cd-"*) ;; *) some 2 3 4 ;; esac
    for blocks in none 1 $all; do
        train "$name-$blocks" "$ranks" train "$T/small" --model resgcn --layers 7 --hidden 12 --epochs 8 --dropout 0.3 \
            --recompute $blocks "$@"
        same_results "$name-none" "$name-$blocks"
    done
}

# less RANKS OPTION ...: fewer bytes with outputs that are made again, as planned. Of 50 matrices, 26 are left with 1, 11 with 4.
less() {
    ranks=$1
    shift
    for blocks in none 1 4; do
        train "less-$ranks-$blocks" "$ranks" train "$T/large" --model resgcn --layers 24 --hidden 48 --epochs 2 --tiles 6 \
            --workers 1 --recompute $blocks "$@"
    done
    for kind in head:total tail:tile_bytes; do
        all=$(figure "${kind%:*}" "$T/less-$ranks-none/log" "${kind#*:}") rows=$(figure "${kind%:*}" "$T/less-$ranks-1/log" "${kind#*:}")
        few=$(figure "${kind%:*}" "$T/less-$ranks-4/log" "${kind#*:}")
        echo "${kind#*:}: $all bytes, $rows with --recompute 1, $few with --recompute 4"
        [ -n "$all" ] && [ -n "$rows" ] && [ $((100 * rows)) -le $((75 * all)) ] || die "${kind#*:}: $rows bytes instead of $all"
        [ -n "$few" ] && [ $((100 * few)) -le $((65 * rows)) ] || die "${kind#*:}: $few bytes instead of $rows"
    done
}

# Taken within 10 % of the plan.
memory() { # RANKS OPTION ...
    ranks=$1
    shift
    train memory "$ranks" train "$T/large" --epochs 2 --hidden 96 --tiles 6 --workers 1 "$@"
    echo "$(figure head log total) bytes planned, $(figure tail log tile_bytes) taken"
    as_planned log "$@"
}

# memories OPTION ...: on a distribution of three, at which models take turns.
memories() {
    long=2
    some 1d halo vertex-cut
    for kind in $all; do
        memory 3 --distribution "$kind" "$@"
    done
}

# continued NAME RANKS OPTION ...: 17 epochs, or 7 and the others: the same bits.
continued() {
    name=$1 ranks=$2
    shift 2
    train "$name-whole" "$ranks" train "$T/small" --epochs 17 --hidden 12 --dropout 0.3 "$@"
    train "$name-half" "$ranks" train "$T/small" --epochs 7 --hidden 12 --dropout 0.3 "$@"
    run "$ranks" train "$T/small" --epochs 17 --resume ck --log rest --checkpoint ck || die "$(cat err)"
    losses "$name-whole" | tail -n 10 >"$T/one"
    sed -n 's/.*"epoch",.*"loss":\([^",}][^",}]*\).*/\1/p' rest >"$T/two"
    [ "$(wc -l <"$T/two")" -eq 10 ] || die "not 10 epochs"
    diff "$T/one" "$T/two" || die "other losses"
    tensors "$T/$name-whole/ck" >"$T/one"
    tensors ck | cmp - "$T/one" || die "other tensors"
}

# predicted NAME RANKS OPTION ...: a prediction has the accuracies that the training ended with.
predicted() {
    name=$1 ranks=$2
    shift 2
    train "$name" "$ranks" train "$T/small" --hidden 12 "$@"
    tail -n 1 log >end
    run 1 predict ck "$T/small" --output p.npy || die "$(cat err)"
    for split in training validation test; do
        key=$(echo $split | sed 's/training/train/; s/validation/val/')
        told=$(sed -n "s/.*\"${key}_accuracy\":\([0-9.]*\).*/\1/p" end)
        found=$(sed -n "s/.*$split \([0-9.]*\).*/\1/p" out)
        echo "$split: $told, predicted $found"
        awk "BEGIN { d = $told - $found; exit !(d < 1e-4 && d > -1e-4 && $told > 0.3) }" || die "$split: $told, and $found"
    done
}

# Where memory is short, auto makes outputs again, and says so; the run fits. Where there is enough, it does not.
automatic() {
    (ulimit -v 4000000 && timeout 20 "$STARLING" version) >/dev/null 2>&1 || skip "no ulimit -v here"
    "$STARLING" generate community "$T/big" --vertices 20000 --classes 4 --degree 4 --features 32 >"$T/out" || exit 1
    for case in 4000000:none 590000:some 560000:some; do
        (ulimit -v "${case%:*}" && exec timeout 60 "$STARLING" train "$T/big" --model resgcn --layers 36 --hidden 128 \
            --tiles 4 --epochs 1 --workers 1 --log "$T/log") >"$T/out" 2>"$T/err" </dev/null || die "$(cat "$T/err")"
        chosen=$(sed -n 's/.*"recompute":"\([^"]*\)".*/\1/p' "$T/log")
        said=$(sed -n 's/^chosen for this dataset:.*--recompute \([0-9]*\).*/\1/p' "$T/out")
        echo "${case%:*} kB: $chosen"
        case ${case#*:}:$chosen in
        none:none) [ -z "$said" ] || die "it says $said" ;;
        some:[1-9]*) [ "$said" = "$chosen" ] || die "it says $said: $(cat "$T/out")" ;;
        *) die "${case%:*} kB: $chosen" ;;
        esac
    done
}

# ill TEXT ARGUMENT ...: one sentence, which holds TEXT, and exit status 2.
ill() {
    text=$1
    shift
    exits 2 train "$karate" "$@"
    [ "$(wc -l <"$T/err")" -eq 1 ] || die "not one line: $(cat "$T/err")"
    sentence "$text" "$T/err"
}

one_norm() {
    for name in block-norm norm-layers; do
        train "norm-resgcn-$name" 1 train "$T/small" --epochs 20 --eval-every 1 --model resgcn --layers 2 --$name batch
        train "norm-gcn-$name" 1 train "$T/small" --epochs 20 --eval-every 1 --$name row
    done
    same_results norm-resgcn-block-norm norm-resgcn-norm-layers
    same_results norm-gcn-block-norm norm-gcn-norm-layers
    train norm-gcn-none 1 train "$T/small" --epochs 20 --eval-every 1
    if (same_results norm-gcn-none norm-gcn-norm-layers) >/dev/null 2>&1; then
        die "--norm-layers row changes nothing"
    fi
}

check "datasets" data
check "a directed, weighted dataset out of an edge list" directed
check "112 blocks" deepest row 1
check "112 blocks, normalised columns, made again" deepest batch 1 --recompute 10
check "112 blocks on 2 ranks, made again" deepest row 2 --distribution halo --recompute 11
check "made again: the same bits" again row 1
check "... normalised columns" again batch 1 --block-norm batch
check "... bfloat16" again bf16 1 --precision bf16
check "... bfloat16, normalised columns, SpMM first" again bf16-batch 1 --precision bf16 --block-norm batch --product-order spmm
check "... of a halo" again halo 2 --distribution halo
check "... of a halo, normalised columns, bfloat16" again halo-batch 3 --distribution halo --block-norm batch --precision bf16
check "... of a 2d grid" again grid 4 --grid 2x2x1
check "... of a 3d grid, normalised columns, bfloat16" again grid-batch 4 --grid 1x2x2 --block-norm batch --precision bf16
check "... of means, of a vertex-cut" again means 2 --distribution vertex-cut --aggregator mean
check "... of a vertex-cut" again cut 2 --distribution vertex-cut
check "... of a vertex-cut, normalised columns" again cut-batch 3 --distribution vertex-cut --block-norm batch
check "... of a vertex-cut with late messages" again cut-late 3 --distribution vertex-cut --delay cd-2
check "... of a vertex-cut without messages" again cut-0c 3 --distribution vertex-cut --delay 0c --exact-epochs 0
for model in "resgcn --layers 3" "resgcn --layers 3 --block-norm batch" "resgcn --layers 6 --block-norm batch --recompute 2" \
    "gin --layers 2" "sgc --hops 3" "appnp --hops 4" "jknet --layers 3"; do
    # shellcheck disable=SC2086
    check "the same bits on any number of ranks: $model" grid bits 3 "$T/small" --epochs 12 --eval-every 4 --hidden 12 \
        --tiles 7 --dropout 0.3 --model $model
done
check "--norm-layers and --block-norm: one option" one_norm
check "made again: less memory" less 1
check "... on 3 ranks" less 3 --distribution halo --block-norm batch
for model in "resgcn --layers 6" "resgcn --layers 6 --block-norm batch" "resgcn --layers 9 --recompute 3" "gin --layers 3" \
    "sgc --hops 3" "appnp --hops 4" "jknet --layers 4" "gcn --layers 4 --residual linear --norm-layers batch"; do
    # shellcheck disable=SC2086
    check "memory as planned: $model" memory 1 --model $model
    # shellcheck disable=SC2086
    check "memory as planned: $model, 3 ranks" memories --model $model
done
check "memory as planned: gat, normalised rows" memory 1 --model gat --layers 3 --norm-layers row
check "memory as planned: identity residual, sum of outputs" memory 1 --layers 4 --residual identity --jump sum --encoder linear
check "memory as planned: largest of outputs" memory 1 --layers 4 --jump max --norm-layers row
check "memory as planned: identity residual, 3 ranks" memories --layers 4 --residual identity --jump concat
check "memory as planned: gat, linear residual" memory 1 --model gat --layers 3 --residual linear --classifier linear
check "memory as planned: gatv2" memory 1 --model gatv2 --layers 3
check "memory as planned: transformer" memory 1 --model transformer --layers 3 --norm-layers row
least=80 # rows and scores of attention travel together
check "memory as planned: gat, normalised rows, 3 ranks" memories --model gat --layers 3 --norm-layers row
check "memory as planned: gat, linear residual, 3 ranks" memories --model gat --layers 3 --residual linear --classifier linear
check "memory as planned: gatv2, 3 ranks" memories --model gatv2 --layers 3
check "memory as planned: transformer, 3 ranks" memories --model transformer --layers 3
least= one_of=5 # of all ways to share; models take turns
for model in "resgcn --layers 3" "resgcn --layers 3 --block-norm batch" "resgcn --layers 7 --recompute 3" \
    "resgcn --layers 4 --block-norm batch --recompute 2" "resgcn --layers 3 --precision bf16 --recompute 2"; do
    # shellcheck disable=SC2086
    check "received as planned: $model" received_as_planned received \
        "2:2x1x1 2:1x2x1 2:1x1x2 3:3x1x1 3:1x3x1 4:2x2x1 4:2x1x2 4:1x2x2 2:halo 3:halo 4:cover 2:vertex-cut 4:vertex-cut" \
        "$T/directed" --tiles 9 --hidden 7 --model $model
done
for model in "resgcn --layers 5" "resgcn --layers 5 --block-norm batch" "resgcn --layers 6 --recompute 3" \
    "resgcn --layers 4 --precision bf16" "jknet --layers 4"; do
    # shellcheck disable=SC2086
    check "memory as planned: $model, 2d" memory 4 --grid 2x2x1 --model $model
done
check "memory as planned: resgcn of means" memory 1 --model resgcn --layers 5 --aggregator mean --recompute 2
check "memory as planned: resgcn, one row of ranks" memory 3 --grid 1x3x1 --model resgcn --layers 5
check "memory as planned: jknet, one row of ranks" memory 3 --grid 1x3x1 --model jknet --layers 8
for model in "gin --layers 2" "gin --layers 2 --precision bf16" "gin --layers 3 --product-order spmm" "sgc --hops 3" "appnp --hops 4" \
    "jknet --layers 3" "jknet --layers 3 --precision bf16 --product-order spmm" "gcn --layers 3 --residual linear --norm-layers row" \
    "sage --layers 3 --norm-layers batch" "gat --layers 2 --heads 3 --hidden 4 --residual linear --classifier linear" \
    "gcn --layers 2 --encoder linear --activation elu" "gcn --layers 3 --residual identity --jump sum" \
    "sage --layers 3 --residual identity --jump concat" "sage --layers 3 --jump max" "resgcn --layers 3 --aggregator mean" "gat --layers 2 --heads 3 --hidden 4 --residual identity --jump concat"; do
    # shellcheck disable=SC2086
    check "received as planned: $model" received_as_planned received \
        "2:2x1x1 2:1x2x1 2:1x1x2 3:1x3x1 4:2x2x1 4:2x1x2 4:1x2x2 2:halo 3:halo 4:cover 2:vertex-cut 4:vertex-cut" \
        "$T/directed" --tiles 9 --hidden 7 --model $model
done
one_of=
check "received as planned: resgcn, normalised columns, where outputs share places" received_as_planned shared \
    "2:2x1x1 4:2x2x1 3:halo 3:vertex-cut" "$T/large" --tiles 6 --hidden 96 --workers 1 --model resgcn --block-norm batch --layers 5 \
    --recompute 2
check "received as planned: resgcn, adjacency travels" received_as_planned travels "2:2x1x1 4:2x1x2" "$T/directed" --tiles 9 \
    --hidden 7 --model resgcn --recompute 2 --no-cache-adjacency
check "auto: made again where memory is short" automatic
check "goes on from a checkpoint: normalised columns" continued batch 1 --model resgcn --block-norm batch
check "... made again, on 3 ranks" continued batch-3 3 --model resgcn --block-norm batch --layers 5 --recompute 2 --distribution halo
check "... on a 2d grid" continued batch-2d 4 --model resgcn --block-norm batch --layers 3 --recompute 2 --grid 2x2x1
check "... on a row of ranks, normalised rows" continued row-3 3 --model resgcn --layers 3 --grid 1x3x1
check "... hops that return" continued appnp 1 --model appnp --hops 4
check "... hops that return, on 3 ranks" continued appnp-3 3 --model appnp --hops 4 --distribution vertex-cut
check "... outputs side by side, on 3 ranks" continued jknet-3 3 --model jknet --layers 3 --distribution halo
check "predicts as it was trained: normalised columns" predicted p-batch 1 --model resgcn --block-norm batch --epochs 40 --lr 0.02
check "... the best epoch" predicted p-best 1 --model resgcn --block-norm batch --epochs 60 --patience 8 --lr 0.02
check "... trained on a 2d grid" predicted p-2d 4 --model resgcn --block-norm batch --epochs 40 --lr 0.02 --grid 2x2x1
check "... trained on 3 ranks" predicted p-3 3 --model resgcn --block-norm batch --epochs 40 --lr 0.02 --distribution vertex-cut
check "... normalised rows" predicted p-row 1 --model resgcn --epochs 40 --lr 0.02
check "... sums" predicted p-gin 1 --model gin --epochs 40
check "... hops" predicted p-sgc 1 --model sgc --epochs 30
check "... hops that return" predicted p-appnp 1 --model appnp --hops 4 --epochs 30
check "... outputs side by side" predicted p-jknet 1 --model jknet --layers 3 --epochs 30
check "no block made again: one sentence" ill "--recompute 0: expected auto, none, or 1 to 1000" --recompute 0
check "... nor a word" ill "--recompute x: expected auto, none, or 1 to 1000" --recompute x --model resgcn
check "... nor with more" ill "--recompute 4x: expected auto, none, or 1 to 1000" --recompute 4x --model resgcn
check "no blocks: one sentence" ill "--recompute 4: --model gcn has no blocks" --recompute 4 --model gcn
check "late messages, made again: one sentence" ill "--recompute 4: with --delay cd-2" --recompute 4 --delay cd-2 \
    --model resgcn --distribution vertex-cut
narrow() { # MODEL: hidden columns of the only layer are cut, too
    run 2 train "$karate" --model "$1" --layers 1 --hidden 1 --grid 1x2x1 && die "it trained"
    sentence "--hidden are 1 (expected no fewer than the grid's 2 columns" err
}
check "one block, fewer hidden columns than the grid's: one sentence" narrow resgcn
check "... one layer of two products" narrow gin
check "two vertex orders: one sentence" ill "--order double: --model appnp needs a vertex" --order double --model appnp
check "... outputs side by side" ill "--order double: --model jknet needs a vertex" --order double --model jknet
check "... of blocks" ill "--order double: --model resgcn needs a vertex" --order double --model resgcn
finish
