#!/bin/sh
# Grids of ranks do not change results but for rounding: losses to 1e-4 of those of one rank. One line per case.
# More ranks than cores are slow: graphs are tiny and runs are short.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="grids permuted within memory attention_memory no_more"

# grids NAME EPOCHS "RANKS:OPTIONS ..." OPTION ...: the same losses on one rank and on these, and the same bits when the last
# is run again; _ stands for a space.
grids() {
    name=$1 epochs=$2 all=$3
    shift 3
    train "$name-1" 1 train "$@" --epochs "$epochs"
    for grid in $all; do
        ranks=${grid%%:*} options=$(echo "${grid#*:}" | tr _ ' ')
        # shellcheck disable=SC2086
        train "$name-$grid" "$ranks" train "$@" --epochs "$epochs" $options
        near "$name-1" "$name-$grid" "$epochs"
    done
    # shellcheck disable=SC2086
    train "$name-again" "$ranks" train "$@" --epochs "$epochs" $options
    cmp "$T/$name-$grid/ck" "$T/$name-again/ck" || die "other parameters when run again"
}

# permuted NAME EPOCHS "RANKS:OPTIONS ..." OPTION ...: the same losses on one rank without the double permutation, on one
# rank with it, and on these with it.
permuted() {
    name=$1 epochs=$2 grids=$3
    shift 3
    train "$name-plain" 1 train "$@" --epochs "$epochs"
    grids "$name" "$epochs" "$grids" "$@" --order double
    near "$name-plain" "$name-1" "$epochs"
}

# Of the rows of the others a rank needs (R - 1) / R of its layer's, an L-th of all (CAGNET, section 4.2), and of its own
# group's rows it gets the sums of L - 1 layers.
words() {
    for kind in 1d 1.5d; do
        train "words-$kind" 8 train "$T/directed" --epochs 2 --tiles 8 --hidden 16 --product-order gemm --distribution $kind
    done
    rows=$(traffic words-1d rows_received) halved=$(traffic words-1.5d rows_received) sums=$(traffic words-1.5d sums_received)
    width=$((4 * 2 * 61 * (16 + 3)))
    echo "1d: $rows bytes of rows; 1.5d: $halved of rows, $sums of sums; n f: $width"
    [ "$rows" -eq $((width * 7)) ] && [ "$halved" -eq $((width * 3)) ] && [ "$sums" -eq "$width" ] ||
        die "other words than the formulas"
}

# All need the rows of rank 0, where the hub is: they are handed on, and arrive with the same bits. Rank 0 sends as many
# words fewer as another rank sends more.
hub() {
    awk 'BEGIN { for (v = 1; v < 61; v++) print v, 0 }' | dataset "$T/hub" 61 9
    for form in direct chain tree; do
        train "hub-$form" 4 train "$T/hub" --epochs 30 --hidden 16 --tiles 8 --distribution 1d --broadcast $form
        sed -n 's/.*"bytes_sent":\[\([0-9]*\).*/\1/p' log >"$T/sent-$form"
    done
    direct=$(cat "$T/sent-direct") chain=$(cat "$T/sent-chain") tree=$(cat "$T/sent-tree")
    echo "rank 0 sent $direct bytes, in a chain $chain, in a tree $tree"
    [ "$chain" -gt 0 ] && [ "$chain" -lt "$tree" ] && [ "$tree" -lt "$direct" ] || die "nothing is handed on"
    for form in chain tree; do
        same_tensors $((9 * 16 + 16 + 16 * 3 + 3)) "$T/hub-direct/ck" "$T/hub-$form/ck"
        [ "$(traffic hub-direct bytes_sent)" -eq "$(traffic hub-$form bytes_sent)" ] || die "other words in a $form"
    done
}

# Half the epochs on one grid, the others on another; predictions on a third: to rounding.
handed_over() {
    train whole 1 train "$T/directed" --epochs 8 --tiles 5 "$@"
    train half 4 train "$T/directed" --epochs 4 --tiles 5 --distribution 2d "$@"
    train half 6 train "$T/directed" --epochs 8 --tiles 5 --resume ck --grid 3x1x2
    near whole half 8
    for grid in 1x1x1 2x1x2 1x2x2; do
        [ $grid = 1x1x1 ] && ranks=1 || ranks=4
        run $ranks predict ck "$T/directed" --tiles 5 --grid $grid --output p-$grid.npy --embeddings h-$grid.npy ||
            die "$(cat err)"
        cmp p-1x1x1.npy p-$grid.npy || die "other predictions on $grid"
        numbers h-$grid.npy >h-$grid
        close_to h-1x1x1 h-$grid
    done
}

# Graph attention, whose last layer has more columns than classes.
attention_handed_over() {
    set -- --model gat --hidden 5 --heads 3 --out-heads 2
    train heads 1 train "$T/directed" --epochs 8 --tiles 5 "$@"
    train heads-half 4 train "$T/directed" --epochs 4 --tiles 5 --grid 1x2x2 "$@"
    train heads-half 3 train "$T/directed" --epochs 8 --tiles 5 --resume ck --distribution halo
    near heads heads-half 8
    run 1 predict ck "$T/directed" --output p-1.npy --embeddings h-1.npy || die "$(cat err)"
    numbers h-1.npy >h-1
    for grid in 2x3x1 1x2x1; do
        [ $grid = 1x2x1 ] && ranks=2 || ranks=6
        run $ranks predict ck "$T/directed" --tiles 5 --grid $grid --output p-$grid.npy --embeddings h-$grid.npy ||
            die "$(cat err)"
        cmp p-1.npy p-$grid.npy || die "other predictions on $grid"
        numbers h-$grid.npy >h-$grid
        close_to h-1 h-$grid
    done
}

attention_plan() {
    "$STARLING" plan "$karate" --model gat --ranks 4 >"$T/out" 2>"$T/err" || die "exit status $?: $(cat "$T/err")"
    for way in 1d "1.5d 2x1x2" "1.5d 1x1x4" "2d 2x2x1" 1x2x2 halo cover vertex-cut; do
        grep -q "^  $way " "$T/out" || die "no $way in: $(cat "$T/out")"
    done
}

attention_memory() {
    cd "$T" || exit 1
    "$STARLING" generate community deep --vertices 6000 --classes 4 --degree 10 --features 96 >out || exit 1
    for how in "--distribution 1d" "--distribution 2d" "--distribution vertex-cut --partition metis"; do
        # shellcheck disable=SC2086
        taken_as_planned --layers 4 --hidden 16 --heads 8 --model gat $how
    done
    rm -r deep
}

# Messages are not remembered for ever: 500 more epochs, of 60 messages each, take little memory. The peak, in KiB.
no_more() {
    for epochs in 100 600; do
        train "long-$epochs" 2 train "$karate" --tiles 8 --grid 1x2x1 --layers 3 --product-order gemm --epochs $epochs
    done
    few=$(($(figure tail "$T/long-100/log" peak_memory_bytes) / 1024))
    many=$(($(figure tail "$T/long-600/log" peak_memory_bytes) / 1024))
    echo "$few KiB, later $many"
    [ "$few" -gt 1000 ] && [ $((many - few)) -lt 4000 ] || die "it grew"
}

memory() {
    cd "$T" || exit 1
    "$STARLING" generate community deep --vertices 6000 --classes 4 --degree 10 --features 96 >out || exit 1
    for grid in 2x1x2 2x2x1 1x2x2; do
        taken_as_planned --layers 6 --hidden 192 --grid $grid
    done
    taken_as_planned --layers 6 --hidden 192 --grid 2x2x1 --model sage --dropout 0
    taken_as_planned --layers 5 --hidden 192 --grid 2x2x1 --order double
}

check "a directed, weighted dataset out of an edge list" directed
check "1.5d: directed, 3 layers, dropout" grids directed 8 "6:--distribution_1.5d_--replication_3
    2:--distribution_1.5d 4:--distribution_1.5d" "$T/directed" --tiles 11 --layers 3 --hidden 7 --norm row
check "1.5d: karate, SpMM first, one stage at a time" grids karate 8 "4:--grid_2x1x2_--no-overlap 3:--grid_1x1x3" \
    "$karate" --tiles 5 --dropout 0.5 --product-order spmm
check "1.5d: bfloat16" within 1e-3 grids narrow 8 "4:--distribution_1.5d" "$T/directed" --tiles 7 --hidden 20 --precision bf16
check "1.5d: aggregated features" grids aggregated 8 "4:--distribution_1.5d" "$T/directed" --tiles 7 --dropout 0
check "2d: directed, 4 layers, GEMM first" grids square 5 "4:--distribution_2d 3:--grid_1x3x1_--no-overlap" \
    "$T/directed" --tiles 9 --layers 4 --hidden 7 --norm row --product-order gemm
check "2d: SpMM first" grids spmm 5 "6:--grid_3x2x1 4:--grid_2x2x1_--no-overlap" \
    "$T/directed" --tiles 9 --layers 4 --hidden 11 --product-order spmm
check "2d: more classes than hidden columns" grids few 5 "4:--grid_2x2x1 4:--grid_2x2x1_--no-overlap" \
    "$T/directed" --tiles 9 --layers 3 --hidden 2
check "2d: sparse features" grids sparse 5 "4:--distribution_2d" "$karate" --tiles 5 --patience 20
check "2d: aggregated sparse features, one layer" grids single 5 "4:--grid_1x2x2" \
    "$karate" --tiles 5 --layers 1 --dropout 0
check "2d: aggregated dense features" grids dense 5 "4:--distribution_2d" "$T/directed" --tiles 7 --dropout 0
check "2d: bfloat16" within 1e-3 grids halves 5 "4:--distribution_2d" "$T/directed" --tiles 7 --layers 3 --hidden 10 \
    --precision bf16
check "GraphSAGE, mean: 3 layers, dropout" grids mean 5 "4:--distribution_2d 4:--grid_1x2x2_--no-overlap" \
    "$T/directed" --tiles 9 --layers 3 --hidden 7 --model sage
check "GraphSAGE, sum: aggregated dense features, SpMM first" grids sum 5 "4:--grid_2x2x1 2:--grid_1x1x2" \
    "$T/directed" --tiles 7 --layers 3 --hidden 9 --model sage --aggregator sum --product-order spmm --dropout 0 --lr 0.001
check "GraphSAGE, mean: sparse features, GEMM first, bfloat16" within 1e-3 grids halves-mean 5 "4:--distribution_2d 2:--grid_1x1x2" \
    "$karate" --tiles 5 --layers 3 --model sage --product-order gemm --precision bf16
check "GraphSAGE, mean: aggregated sparse features" grids kept-mean 5 "4:--grid_1x2x2" \
    "$karate" --tiles 5 --model sage --dropout 0
check "GraphSAGE, gcn: double permutation" permuted sage 4 "4:--distribution_2d" "$T/directed" --tiles 9 --model sage \
    --aggregator gcn
check "graph attention: received as planned" received_as_planned planned-attention \
    "2:2x1x1 2:1x1x2 3:1x3x1 3:1x1x3 4:2x1x2 4:1x2x2 3:halo 2:cover 4:cover 3:vertex-cut" "$T/directed" --tiles 9 --layers 3 \
    --model gat --hidden 5 --heads 3 --out-heads 2
check "graph attention" grids attention 5 "4:--distribution_1.5d 3:--grid_1x1x3_--no-overlap 3:--distribution_1d
    4:--distribution_2d 3:--grid_1x3x1_--no-cache-adjacency 4:--grid_1x2x2" \
    "$T/directed" --tiles 7 --layers 3 --model gat --hidden 5 --heads 3 --out-heads 2
check "graph attention: predicted and resumed on other ranks" attention_handed_over
check "graph attention: a plan has all distributions" attention_plan
check "graph attention: memory as planned" attention_memory
check "3d: directed, 4 layers" grids cube 3 "8:--distribution_3d" "$T/directed" --tiles 9 --layers 4 --hidden 7
check "double permutation: 2 layers, dropout" permuted even 4 "4:--distribution_2d 4:--grid_1x2x2" \
    "$T/directed" --tiles 9 --product-order gemm
check "double permutation: 3 layers, SpMM first" permuted odd 4 "4:--distribution_2d_--no-overlap_--no-cache-adjacency
    4:--distribution_1.5d" "$T/directed" --tiles 9 --layers 3 --hidden 7 --norm row --product-order spmm
check "double permutation: aggregated features" permuted kept 4 "4:--distribution_2d" "$T/directed" --tiles 7 --dropout 0
check "double permutation: symmetric, sparse features" within 1e-3 permuted ids 4 "4:--distribution_2d 2:--grid_1x1x2" "$karate" \
    --tiles 5 --layers 3 --precision bf16
check "ranks without tiles" grids empty 4 "4:--grid_2x1x2 4:--grid_1x2x2 4:--grid_2x2x1_--no-cache-adjacency" \
    "$karate" --tiles 1 --layers 3
check "adjacency that is not kept" grids dropped 4 "6:--grid_2x3x1_--no-cache-adjacency_--no-overlap
    4:--grid_1x2x2_--no-cache-adjacency" "$T/directed" --tiles 9 --layers 3 --hidden 7
check "predicted and resumed on other grids" handed_over
check "the same of GraphSAGE" handed_over --model sage
check "rows are handed on" hub
check "memory: as planned" memory
check "memory: no more after many epochs" no_more
check "words on 8 ranks: those of rows halve, and more" words
check "2d on ranks that are no square: one sentence" refused "--distribution 2d: 3 ranks (expected a square" \
    train "$karate" --distribution 2d
check "more columns than classes: one sentence" refused "the classes are 2 (expected no fewer than the grid's 3" \
    train "$karate" --grid 1x3x1
check "GraphSAGE with two orders of vertices: one sentence" refused "--order double: --aggregator mean" \
    train "$karate" --model sage --order double
check "ranks that are not in layers: one sentence" refused "--replication 2: expected a number that divides the 3 ranks" \
    train "$karate" --distribution 1.5d
check "replication without layers: one sentence" refused --replication train "$karate" --replication 3
check "a grid of other ranks: one sentence" refused "--grid 2x1x2: these are 4 ranks (expected the 3" \
    train "$karate" --grid 2x1x2
check "a grid that is none: one sentence" refused "--grid 3x1: expected RxCxD" train "$karate" --grid 3x1
finish
