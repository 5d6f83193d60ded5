#!/bin/sh
# Rows that travel as a halo, and results of a cover, do not change results but for rounding; tests/every-cut.sh has more of it. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="halos within"

# parts FILE VERTICES EXPRESSION: the part of vertex v, as awk says it.
parts() {
    npy "$1" '<i4' "($2,)" "$(awk "BEGIN { for (v = 0; v < $2; v++) printf \"\\\\%03o\\\\000\\\\000\\\\000\", $3 }")"
}

# halos NAME EPOCHS "RANKS ..." OPTION ...: the same losses on one rank and on these, and the same bits when run again.
halos() {
    name=$1 epochs=$2 all=$3
    shift 3
    train "$name-1" 1 train "$@" --epochs "$epochs"
    for n in $all; do
        train "$name-$n" "$n" train "$@" --epochs "$epochs" --distribution "${kind:-halo}"
        near "$name-1" "$name-$n" "$epochs"
    done
    train "$name-again" "$n" train "$@" --epochs "$epochs" --distribution "${kind:-halo}"
    cmp "$T/$name-$n/ck" "$T/$name-again/ck" || die "other parameters when run again"
}

# Runs of vertices and a tile for each rank: terms are added in the order of 1D, so that the bits are the same.
as_1d() {
    parts "$T/runs.npy" 61 "int(((v + 1) * 4 - 1) / 61)"
    set -- "$T/directed" --epochs 10 --tiles 4 --balance rows --layers 3 --hidden 7
    train as-1d 4 train "$@" --distribution 1d
    train as-halo 4 train "$@" --distribution halo --partition "$T/runs.npy"
    results "$T/as-1d/log" >one
    results "$T/as-halo/log" >two
    [ "$(wc -l <one)" -gt 20 ] || die "an empty log"
    diff one two || die "other losses than those of 1d"
    [ "$(traffic as-halo rows_received)" -lt "$(traffic as-1d rows_received)" ] || die "no fewer rows than 1d"
}

# What each rank receives is what its edges, and those of the transpose, touch: counted from the edges.
words() {
    parts "$T/words.npy" 61 "v * 7 % 4"
    train words 4 train "$T/directed" --epochs 2 --hidden 16 --product-order gemm --distribution halo --partition "$T/words.npy"
    awk 'function part(v) { return v * 7 % 4 }
        { a = $1; b = $2
          if (part(a) != part(b)) { if (!seen[part(b), a]++) rows[part(b)]++; if (!back[part(a), b]++) rows[part(a)]++ } }
        END { for (p = 0; p < 4; p++) printf "%s%d", p ? "," : "", rows[p] * (16 + 3) * 4 }' "$T/directed.txt" >counted
    received=$(sed -n 's/.*"rows_received":\[\([^]]*\).*/\1/p' log | tail -n 1)
    echo "received $received, counted $(cat counted)"
    [ "$received" = "$(cat counted)" ] || die "other words"
}

# Trained as a halo, resumed on one rank; predicted as a halo: in the order of the dataset.
handed_over() {
    train whole 1 train "$T/directed" --epochs 8 --tiles 5
    train half 3 train "$T/directed" --epochs 4 --tiles 5 --distribution "${kind:-halo}"
    train half 2 train "$T/directed" --epochs 8 --tiles 5 --resume ck --distribution "${kind:-halo}"
    near whole half 8
    run 1 predict ck "$T/directed" --output p-1.npy --embeddings h-1.npy || die "$(cat err)"
    run 4 predict ck "$T/directed" --distribution "${kind:-halo}" --output p-4.npy --embeddings h-4.npy || die "$(cat err)"
    cmp p-1.npy p-4.npy || die "other predictions"
    numbers h-1.npy >h-1
    numbers h-4.npy >h-4
    close_to h-1 h-4
}

memory() {
    cd "$T" || exit 1
    "$STARLING" generate community deep --vertices 6000 --classes 4 --degree 10 --features 96 >out || exit 1
    taken_as_planned --layers 6 --hidden 192 --distribution halo
    taken_as_planned --layers 3 --hidden 160 --distribution halo --no-overlap --product-order spmm
    taken_as_planned --layers 3 --hidden 160 --distribution halo --model sage --aggregator max
    taken_as_planned --layers 3 --hidden 160 --distribution cover
    least=75
    for how in 1.5d vertex-cut "1.5d --precision bf16" "vertex-cut --precision bf16"; do
        # shellcheck disable=SC2086
        taken_as_planned --layers 3 --hidden 160 --model sage --aggregator max --distribution $how
    done
}

real() { # DATASET OPTION ...
    [ -d "$SL_SHARED_DATA/$1" ] || skip "not in ${SL_SHARED_DATA:-\$SL_SHARED_DATA}"
    data=$SL_SHARED_DATA/$1
    shift
    halos real 10 "4 3" "$data" "$@"
}

check "a directed, weighted dataset out of an edge list" directed
check "Cora, dropout" real cora
check "directed, 3 layers, dropout, row norm" halos directed 8 "4 3 2" "$T/directed" --tiles 11 --layers 3 --hidden 7 \
    --norm row
check "SpMM first, one stage at a time" halos spmm 8 "3" "$T/directed" --tiles 9 --product-order spmm --no-overlap
check "GEMM first, several tiles a rank" halos gemm 8 "3" "$T/directed" --tiles 13 --product-order gemm
check "bfloat16" within 1e-3 halos narrow 8 "3" "$T/directed" --tiles 7 --hidden 20 --precision bf16
check "aggregated dense features" halos dense 8 "3" "$T/directed" --tiles 7 --dropout 0
check "aggregated sparse features" halos sparse 8 "3" "$karate" --tiles 6 --dropout 0
check "GraphSAGE, max, an order inside parts" halos largest 6 "4" "$T/directed" --tiles 8 --order rabbit --model sage \
    --aggregator max
# Of neighbours that are equal but for a rounding another one may be taken, so that curves part sooner.
check "GraphSAGE, max, bfloat16" within 1e-3 halos largest-narrow 4 "4" "$T/directed" --tiles 7 --hidden 20 --model sage \
    --aggregator max --precision bf16
check "an order inside parts" halos ordered 8 "3" "$T/directed" --tiles 8 --order rabbit
check "a tile for every vertex" halos fine 3 "2" "$karate" --tiles 34
kind=cover
check "cover: Cora, dropout" real cora
check "cover: directed, 3 layers" halos directed 8 "4 3 2" "$T/directed" --tiles 11 --layers 3 --hidden 7 --norm row
check "cover: SpMM first, one stage at a time" halos spmm 8 "3" "$T/directed" --tiles 9 --product-order spmm --no-overlap
check "cover: bfloat16" within 1e-3 halos narrow 8 "3" "$T/directed" --tiles 7 --hidden 20 --precision bf16
check "cover: bfloat16, SpMM first" within 1e-3 halos narrow 8 "3" "$T/directed" --tiles 7 --hidden 20 --precision bf16 --product-order spmm
check "cover: aggregated sparse features" halos sparse 8 "3" "$karate" --tiles 6 --dropout 0
check "cover: aggregated dense features" halos dense 8 "3" "$T/directed" --tiles 7 --dropout 0
check "cover: GraphSAGE, max" halos largest 6 "3" "$T/directed" --tiles 8 --model sage --aggregator max
check "cover: GraphSAGE, mean" halos mean 6 "3" "$T/directed" --tiles 8 --model sage
check "cover: a tile for every vertex" halos fine 3 "2" "$karate" --tiles 34
check "cover: handed over, predictions in the dataset's order" handed_over
kind=halo
check "runs and a tile for each rank: bitwise 1d" as_1d
check "words: the rows that edges touch" words
check "handed over, predictions in the dataset's order" handed_over
check "memory: as planned" memory
check "a part too many: one sentence" refused "vertex 1 is in part 3, expected 0 to 2: 3 parts for as many ranks or groups" \
    train "$T/directed" --distribution halo --partition "$T/words.npy"
# Also on one rank, where parts move nothing.
one_rank() {
    for how in "--distribution halo" "--distribution cover" "--groups 1x1"; do
        # shellcheck disable=SC2086
        exits 1 train "$T/directed" --epochs 1 $how --partition "$T/words.npy"
        sentence ", expected 0 to 0: 1 part for as many ranks or groups" "$T/err"
        # shellcheck disable=SC2086
        exits 0 train "$T/directed" --epochs 1 $how --partition "$T/zeros.npy" --quiet
    done
}
parts "$T/zeros.npy" 61 "0"
check "parts of several ranks on one: one sentence" one_rank
parts "$T/ring.npy" 24 "v % 2"
check "parts of another graph: one sentence" refused "has 24 elements, expected the part of each of the 61 vertices" \
    train "$T/directed" --distribution halo --partition "$T/ring.npy"
check "no such partition: one sentence" refused "absent.npy" train "$karate" --distribution halo --partition absent.npy
check "a partition for a grid: one sentence" refused "--partition absent.npy: expected --distribution halo, cover or vertex-cut with it" \
    train "$karate" --partition absent.npy
check "a grid as a vertex-cut: one sentence" refused "--grid 3x1x1: expected no --distribution vertex-cut with it" \
    train "$karate" --distribution vertex-cut --grid 3x1x1
check "a grid as a halo: one sentence" refused "--grid 3x1x1: expected no --distribution halo with it" \
    train "$karate" --distribution halo --grid 3x1x1
check "two orders: one sentence" refused "--order double: rows and columns need the same parts" \
    train "$karate" --distribution halo --order double
finish
