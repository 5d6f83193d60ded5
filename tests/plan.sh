#!/bin/sh
# What is planned for ranks, and what these then send and take. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
XDG_CACHE_HOME=$T/cache
export XDG_CACHE_HOME

# plan STATUS ARGUMENT ...: words in out and err.
plan() {
    wanted=$1
    shift
    cd "$T" || exit 1
    timeout 60 "$STARLING" plan "$@" >out 2>err </dev/null
    got=$?
    [ $got -eq "$wanted" ] || die "exit status $got instead of $wanted: $(cat out err)"
}

# ill_planned TEXT ARGUMENT ...: one sentence, which holds TEXT; exit status 2, of a file 1.
ill_planned() {
    status=$1 text=$2
    shift 2
    plan "$status" "$@"
    sentence "$text" err
}

# The lists of a kind in a log: the forecast's in its first line, the measured one in its last.
forecast_of() { # LOG KIND
    head -n 1 "$1" | sed -n "s/.*\"forecast\":{[^}]*\"$2\":\[\([^]]*\)\].*/\1/p"
}

measured_of() { # LOG KIND
    tail -n 1 "$1" | sed -n "s/.*\"traffic_per_epoch\":{[^}]*\"$2\":\[\([^]]*\)\].*/\1/p"
}

# as_planned NAME "RANKS:GRID-OR-halo ..." OPTION ...: every rank receives what was planned, to the byte.
as_planned() {
    name=$1 all=$2
    shift 2
    for grid in $all; do
        folder=$name-$grid
        case $grid in *:halo) how=--distribution ;; *) how=--grid ;; esac
        train "$folder" "${grid%%:*}" train "$@" --epochs 2 $how "${grid#*:}"
        for kind in bytes_received rows_received sums_received adjacency_received; do
            planned=$(forecast_of log $kind) measured=$(measured_of log $kind)
            [ -n "$planned" ] && [ "$planned" = "$measured" ] || die "$grid, $kind: $planned planned, $measured received"
        done
        [ "$(forecast_of log messages | tr , '\n' | awk '{ n += $1 } END { print n }')" = "$(traffic "$folder" messages)" ] ||
            die "$grid: $(forecast_of log messages) messages planned, $(measured_of log messages) sent"
    done
}

# What the command plans is what training says, which reads its part alone.
same_plan() {
    for grid in 4x1x1 2x2x1 1x2x2; do
        train "same-$grid" 4 train "$T/directed" --epochs 2 --tiles 8 --hidden 20 --grid $grid "$@"
    done
    train same-halo 4 train "$T/directed" --epochs 2 --tiles 8 --hidden 20 --distribution halo "$@"
    plan 0 "$T/directed" --ranks 4 --tiles 8 --hidden 20 --json plan.json "$@"
    for grid in 4x1x1 2x2x1 1x2x2 halo; do
        most=$(forecast_of "$T/same-$grid/log" bytes_received | tr , '\n' | sort -n | tail -n 1)
        grep -A 40 "\"words\"" plan.json | grep -q "\"bytes_received\": $most,*$" || die "$grid: no $most in plan.json"
    done
}

# auto takes what the plan says, and says so.
automatic() {
    train automatic 4 train "$T/directed" --epochs 2 --tiles 8
    grep -q '^distribution ' out && grep -q '"grid_reason":' log || die "$(cat out)"
    train single 1 train "$T/directed" --epochs 2 --tiles 8
    ! grep -q '^distribution ' out || die "$(cat out)"
}

# Words that a rank receives, on average: of $T/plan.json, a line for each grid.
words_of_grids() {
    tr -d '", ' <"$T/plan.json" | awk -F: '
        $1 == "words" { words = $2 }
        $1 == "grid" { grid = $2 }
        $1 == "mean" { mean = 1 }
        $1 == "words" && mean { print grid, words; mean = 0 }' | sort -u
}

# At P = 64 within 20 % of the formulas (docs/DISTRIBUTIONS.md), in n f words per layer, of a graph whose features,
# hidden layers and classes are about 128 wide; and at P = 2048 in CAGNET's order.
formulas() {
    plan 0 --like papers --ranks 64 --hidden 144 --layers 3 --product-order gemm --json plan.json --quiet
    words_of_grids >words
    for case in "64x1x1 2*63/64" "32x1x2 2/2*31/32+2/64" "8x1x8 2/8*7/8+2*7/64" "8x8x1 4/8*7/8" "4x4x4 6/16*3/4"; do
        planned=$(sed -n "s/^${case%% *} //p" words)
        [ -n "$planned" ] || die "no ${case%% *} in: $(cat words)"
        awk "BEGIN { formula = (${case#* }) * 111059956 * (144 + 144 + 172); ratio = $planned / formula
            print \"${case%% *}\", ratio; exit !(ratio > 0.8 && ratio < 1.2) }" || die "${case%% *}: $planned words"
    done
    plan 0 --like proteins --ranks 512 --hidden 128 --json plan.json --quiet
    words_of_grids >words
    for grid in 512x1x1 256x1x2 16x1x32 8x8x8; do
        sed -n "s/^$grid //p" words
    done | awk 'NR > 1 && !($1 < last) { bad = 1 } { last = $1; print } END { exit bad || NR != 4 }' || die "$(cat words)"
}

distributions() {
    cd "$T" || exit 1
    run 2 bench distributions "$T/directed" --epochs 3 --repetitions 1 --workers 1 --tiles 6 --json d.json ||
        die "$(cat out err)"
    [ ! -s err ] && grep -q '^auto is ' out || die "$(cat out err)"
    [ "$(grep -c '"bytes_received_ratio": 1.0' d.json)" -eq 5 ] && [ "$(grep -c '"messages_ratio": 1.0' d.json)" -eq 5 ] ||
        die "$(cat d.json)"
}

machines() {
    for file in "${top_srcdir:-${srcdir:-.}}"/examples/machines/*.json; do
        case $file in /*) ;; *) file=$here/$file ;; esac
        plan 0 --like arxiv --ranks 64 --machine "$file"
        grep -q '^its memory' out || die "$(cat out)"
    done
    sed 's/"gemm_flops_per_second": [^,]*/"gemm_flops_per_second": "fast"/' "$file" >wrong.json
    ill_planned 1 "wrong.json: rank.gemm_flops_per_second is something else, expected a number" \
        --like arxiv --ranks 4 --machine wrong.json
    echo '{"rank": {' >broken.json
    ill_planned 1 "broken.json: line " --like arxiv --ranks 4 --machine broken.json
    ill_planned 1 "absent.json" --like arxiv --ranks 4 --machine absent.json
}
here=$PWD

check "a directed, weighted dataset out of an edge list" directed
check "received as planned: directed, on every grid of 2 and 4 ranks" as_planned directed \
    "2:2x1x1 2:1x2x1 2:1x1x2 4:4x1x1 4:2x2x1 4:2x1x2 4:1x2x2 2:halo 4:halo" "$T/directed" --tiles 9 --layers 3 --hidden 7
check "received as planned: sparse features, SpMM first" as_planned sparse "4:2x2x1 4:1x2x2 3:halo" "$karate" --tiles 6 \
    --product-order spmm
check "received as planned: bfloat16" as_planned narrow "4:2x2x1 2:1x1x2 4:halo" "$T/directed" --tiles 7 --precision bf16
check "received as planned: GraphSAGE" as_planned sage "4:4x1x1 4:2x2x1 4:2x1x2 4:halo" "$T/directed" --tiles 9 --layers 3 \
    --hidden 7 --model sage
check "received as planned: GraphSAGE, aggregated features" as_planned kept "4:2x2x1" "$karate" --tiles 6 --model sage \
    --dropout 0
check "received as planned: GraphSAGE, max" as_planned max "2:2x1x1 2:1x2x1 4:4x1x1 4:2x2x1 2:halo 4:halo" "$T/directed" --tiles 9 --layers 3 \
    --hidden 7 --model sage --aggregator max
check "the command plans what training does" same_plan
check "... and of GraphSAGE" same_plan --model sage --dropout 0
check "words of 64 ranks within 20 % of the formulas, of 512 in their order" formulas
check "auto: a grid, and why" automatic
check "bench distributions on 2 ranks" distributions
check "machine files" machines
check "no ranks: one sentence" ill_planned 2 "--ranks: expected a whole number, 1 to" "$karate" --ranks 0
check "ranks are missing: one sentence" ill_planned 2 "--ranks is missing" "$karate"
check "more ranks than vertices: one sentence" ill_planned 2 "--ranks 64: the graph has 34 vertices" "$karate" --ranks 64
check "a grid is not planned for: one sentence" ill_planned 2 "--grid: plan sets it itself" "$karate" --ranks 4 --grid 2x2x1
check "neither dataset nor --like: one sentence" ill_planned 2 "expected a DATASET or --like NAME" --ranks 4
finish
