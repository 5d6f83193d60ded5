#!/bin/sh
# What is planned for ranks, and what these then send and take. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="received_as_planned same_plan cut_plan memory"
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

# What the command plans is what training says, which reads its part alone.
same_plan() {
    for grid in 4x1x1 2x2x1 1x2x2; do
        train "same-$grid" 4 train "$T/directed" --epochs 2 --tiles 8 --hidden 20 --grid $grid "$@"
    done
    for other in halo cover vertex-cut; do
        train same-$other 4 train "$T/directed" --epochs 2 --tiles 8 --hidden 20 --distribution $other "$@"
    done
    plan 0 "$T/directed" --ranks 4 --tiles 8 --hidden 20 --json plan.json "$@"
    for grid in 4x1x1 2x2x1 1x2x2 halo cover vertex-cut; do
        most=$(prediction_of "$T/same-$grid/log" bytes_received | tr , '\n' | sort -n | tail -n 1)
        grep -A 40 "\"words\"" plan.json | grep -q "\"bytes_received\": $most,*$" || die "$grid: no $most in plan.json"
    done
}

# What vertex-cuts of other parts and delays will receive: late ones on average over their turns, once messages are on
# their way in both directions.
cut_plan() {
    for partition in libra metis random; do
        plan 0 "$T/directed" --ranks 4 --tiles 8 --delay cd-2 --partition $partition --seed 3 --json plan.json "$@"
        grep -q '"cut_parts": "those of --partition"' plan.json || die "$(head -20 plan.json)"
        exact=$(planned_of vertex-cut rows_received) late=$(planned_of "vertex-cutcd-2" rows_received)
        for epochs in 5 6; do
            train late-$epochs 4 train "$T/directed" --tiles 8 --distribution vertex-cut --delay cd-2 --seed 3 \
                --partition $partition --epochs $epochs "$@"
            measured_of log rows_received | tr , '\n' >"$T/late-$epochs.rows"
        done
        most=$(paste "$T/late-5.rows" "$T/late-6.rows" | awk '{ n = ($1 + $2) / 2; if (n > most) most = n } END { print most }')
        [ -n "$late" ] && [ "$late" = "$most" ] || die "$partition: $late bytes planned, $most received"
        train exact 4 train "$T/directed" --tiles 8 --distribution vertex-cut --seed 3 --partition $partition --epochs 2 "$@"
        most=$(measured_of log rows_received | tr , '\n' | sort -n | tail -n 1)
        [ "$exact" = "$most" ] || die "$partition: $exact bytes to leaves planned, $most received"
    done
    plan 0 "$T/directed" --ranks 4 --delay cd-1 --json plan.json
    [ "$(planned_of vertex-cut exact) $(planned_of vertex-cutcd-1 exact)" = "true false" ] || die "$(cat plan.json)"
    ! grep -q '^vertex-cut cd' out || die "one that is not exact wins: $(cat out)"
    plan 0 "$T/directed" --ranks 4 --delay 0c --json plan.json
    [ "$(planned_of "vertex-cut0c" rows_received)" -eq 0 ] && [ "$(planned_of vertex-cut rows_received)" -gt 0 ] ||
        die "$(cat plan.json)"
    ! grep -q '^vertex-cut [0c]' out || die "one that is not exact wins: $(cat out)"
}

# A file of parts of edges is a vertex-cut's alone, one of vertices the halo's, too.
cut_files() {
    "$STARLING" partition "$T/directed" --method hdrf --parts 3 --seed 1 --out "$T/edges.npy" --quiet || exit 1
    "$STARLING" partition "$T/directed" --method random --parts 3 --seed 1 --out "$T/vertices.npy" --quiet || exit 1
    for file in edges vertices; do
        plan 0 "$T/directed" --ranks 3 --partition "$T/$file.npy" --seed 1 --json plan.json
        train cut-$file 3 train "$T/directed" --epochs 2 --distribution vertex-cut --partition "$T/$file.npy" --seed 1
        most=$(measured_of log rows_received | tr , '\n' | sort -n | tail -n 1)
        [ "$(planned_of vertex-cut rows_received)" = "$most" ] || die "$file: $(planned_of vertex-cut rows_received), $most"
    done
    grep -q '"halo_parts": "those of --partition"' "$T/plan.json" || die "$(cat "$T/plan.json")"
    ill_planned 1 "has 3 parts, expected 4" "$T/directed" --ranks 4 --partition "$T/edges.npy"
    plan 0 "$T/directed" --ranks 3 --order rcm --json plan.json
    grep -q '"cut_parts": "none"' plan.json || die "a vertex-cut in another order"
}

# Memory that the command plans, of 4 ranks, within 10 % of what they take.
memory() {
    cd "$T" || exit 1
    "$STARLING" generate community deep --vertices 16000 --classes 4 --degree 10 --features 96 >out || exit 1
    others="cover vertex-cut"
    for options in "--layers 3 --hidden 160" "--layers 2 --hidden 64 --dropout 0 --model sage --aggregator mean" \
        "--hidden 32 --model sage --task links --split-edges 85/5/10 --eval-negatives 50" \
        "--hidden 32 --model sage --task links --split-edges 85/5/10 --loss bpr --negatives 5 --eval-negatives 20"; do
        # shellcheck disable=SC2086
        plan 0 deep --ranks 4 --tiles 8 --json plan.json $options
        for other in $others; do
            # shellcheck disable=SC2086
            run 4 train deep --epochs 2 --tiles 8 --workers 1 --log deep.jsonl --quiet --distribution $other $options ||
                die "$(cat err)"
            planned=$(planned_of $other memory_bytes) taken=$(figure tail deep.jsonl tile_bytes)
            echo "$other: planned $planned bytes, took $taken"
            [ -n "$planned" ] && [ $((100 * taken)) -le $((110 * planned)) ] && [ $((100 * taken)) -ge $((90 * planned)) ] ||
                die "$other: planned $planned bytes, took $taken"
        done
        others="halo vertex-cut"
    done
}

# links_of_like OPTION ...: bytes of a halo on 4 ranks, of links among the edges of arxiv's shape.
links_of_like() {
    plan 0 --like arxiv --ranks 4 --task links --json plan.json --quiet "$@"
    planned_of halo memory_bytes
}

# Half of the 1,166,243 links that --like expects are measured. Ten more negatives for each take 28 bytes a pair on rank 0,
# which receives all pairs and scores them. Links that are measured do not train.
like() {
    ten=$(links_of_like --split-edges 50/0/50 --eval-negatives 10) twenty=$(links_of_like --split-edges 50/0/50 --eval-negatives 20)
    all=$(links_of_like) half=$(links_of_like --split-edges 50/0/50)
    awk "BEGIN { more = ($twenty - $ten) / (10 * 583121 * 28); print more; exit !(more > 0.99 && more < 1.01) }" ||
        die "$ten bytes, with ten more negatives $twenty"
    [ "$half" -lt "$all" ] || die "$all bytes, with half of the links $half"
}

# Where words are dear, auto takes fewest; where messages are dear, likewise. The parts that it has counted are those of a
# run that is asked for.
handed_over() {
    "$STARLING" generate rmat "$T/far" --scale 12 --edge-factor 8 --features 5 --classes 3 >"$T/out" || exit 1
    "$STARLING" generate community "$T/near" --vertices 2000 --classes 4 --degree 10 --features 8 >"$T/out" || exit 1
    for case in "cover:4:far:1e-6:1e4" "halo:4:near:1e-4:1e7" "vertex-cut:2:far:1:1e9"; do
        IFS=: read -r wanted ranks data latency speed <<EOF
$case
EOF
        train "asked-$wanted" "$ranks" train "$T/$data" --epochs 12 --tiles 16 --distribution "$wanted" --seed 2
        slow_link "$latency" "$speed"
        XDG_CACHE_HOME=$T/slow
        train "auto-$wanted" "$ranks" train "$T/$data" --epochs 12 --tiles 16 --seed 2
        XDG_CACHE_HOME=$T/cache
        grep -q "^distribution $wanted: it receives fewer" out || die "not $wanted: $(cat out)"
        same "asked-$wanted" "auto-$wanted"
    done
}

# Where words are dear and other results are allowed, auto takes late ones.
inexact() {
    slow_link 1e-6 1e4
    for delay in 0c cd-2; do
        options=
        [ $delay = 0c ] || options="--delay $delay"
        train "asked-$delay" 4 train "$T/far" --epochs 12 --tiles 16 --distribution vertex-cut --delay $delay --seed 2
        XDG_CACHE_HOME=$T/slow
        # shellcheck disable=SC2086
        train "auto-$delay" 4 train "$T/far" --epochs 12 --tiles 16 --seed 2 --allow-inexact $options
        XDG_CACHE_HOME=$T/cache
        grep -q "^distribution vertex-cut $delay: it receives fewer" out || die "not $delay: $(cat out)"
        results "$T/asked-$delay/log" >"$T/one"
        results log | diff "$T/one" - || die "not as asked for"
        run 4 train "$T/far" --epochs 14 --resume ck --log rest || die "$(cat err)"
        grep -q "\"distribution\":\"vertex-cut\".*\"delay\":\"$delay\"" rest || die "$(head -n 1 rest)"
    done
    plan 0 "$T/far" --ranks 4 --allow-inexact --machine cluster-1gbe
    grep -q '^vertex-cut 0c: ' out || die "it does not win: $(cat out)"
    for ranks in 1 2; do
        train exact-$ranks $ranks train "$karate" --epochs 2 --allow-inexact --delay cd-2
        run $ranks train "$karate" --epochs 4 --resume ck --allow-inexact --log rest || die "$ranks ranks: $(cat err)"
        ! grep -q '"delay":"cd-2"' rest || die "$ranks ranks: $(head -n 1 rest)"
    done
}

# Own tiles that sums meet last: where ranks are in several rows of a grid, and not with a halo.
own_tiles() {
    plan 0 "$T/directed" --ranks 4 --tiles 8 --json plan.json
    for case in 4x1x1:1 2x2x1:1 1x2x2:0 1x1x4:0 halo:0 vertex-cut:0; do
        seconds=$(planned_of "${case%:*}" own_last_seconds)
        awk "BEGIN { exit !((${seconds:--1} > 0) == ${case#*:} && ${seconds:--1} >= 0) }" || die "$case: $seconds s"
    done
    for case in "tiles:would work" "own-first:works"; do
        plan 0 "$T/directed" --ranks 4 --tiles 8 --sum-order "${case%%:*}"
        grep -q "^with [0-9.]*d.*, --sum-order own-first ${case#*:} on [0-9.e-]* ms of own tiles" out || die "$(cat out)"
    done
    plan 0 "$T/directed" --ranks 4 --tiles 8 --no-overlap
    ! grep -q sum-order out || die "$(cat out)"
}

# Two cliques of 20 joined by 7 edges, on two ranks of one tile. Of the 814 entries, loops included, 800 are of own
# rows and columns. A halo sends 11 rows, which are packed. Dense products, passes and tasks cost nothing here, and an
# entry or a packed row as much as another.
cliques() {
    awk 'BEGIN { for (a = 0; a < 40; a++) for (b = a + 1; b < 40; b++) if (int(a / 20) == int(b / 20)) print a, b
                 split("0 0 1 2 3 4 5", x); split("20 21 20 22 33 34 34", y)
                 for (e = 1; e <= 7; e++) print x[e], y[e] }' | awk '{ print; print $2, $1 }' |
        dataset "$T/cliques" 40 9
    sed 's/"\(stream_bytes\|gemm_flops\|gather_[0-9]*_bytes\)_per_second": [^,]*/"\1_per_second": 1e24/
         s/"gather_\([0-9]*\)_bytes_per_second": [^,]*/"gather_\1_bytes_per_second": 1e6, "last_gather_\1_bytes_per_second": 1e6, "core_gather_\1_bytes_per_second": 1e6/
         s/"task_seconds": .*/"task_seconds": 0/; s/"cores": .*/"cores": 1,/' \
        "${top_srcdir:-${srcdir:-.}}/examples/machines/cluster-1gbe.json" >"$T/gathers.json"
    for speed in 10 1e12; do
        sed 's/"latency_seconds": [^,]*/"latency_seconds": 0/; s/"bytes_per_second": .*/"bytes_per_second": '$speed'/' \
            "$T/gathers.json" >"$T/gathers-$speed.json"
    done
}

# mean_of NAME KEY: likewise, of the mean over its ranks.
mean_of() {
    tr -d '", ' <"$T/plan.json" | awk -F: -v name="$1" -v key="$2" '
        $1 == "grid" { grid = $2 }
        { mean = $1 == "mean" || mean && $1 != "}" }
        mean && grid == name && $1 == key { found = $2 }
        END { print found }'
}

# hides NAME SHARE: of the computing of all ranks, what goes on while messages travel.
hides() {
    awk -v hidden="$(mean_of "$1" hidden_seconds)" -v compute="$(mean_of "$1" compute_seconds)" "BEGIN {
        print \"$1\", hidden, compute; share = hidden / compute; exit !(share >= 0.999 * ($2) && share <= 1.001 * ($2)) }" ||
        die "$1 hides $(mean_of "$1" hidden_seconds) of $(mean_of "$1" compute_seconds), not $2 of it"
}

# Where messages take longest, half of what can meet before the last one comes is hidden: own entries in a halo and in
# 1D. In 1x1x2 entries for the other rank come before. A vertex-cut's sums come after all entries. With two tiles of ten
# rows on each rank, one rank has two messages, and half of what it has left meets before the second: 7 entries between
# the cliques and, in the order of tiles, 100 own ones. In one memory, and without overlap, nothing is hidden.
overlap() {
    for machine in gathers-10 gathers-1e12; do
        [ $machine = gathers-10 ] && half=0.5 || half=0
        for case in "halo:800 / (814 + 11)" 2x1x1:800/814 1x1x2:800/814 vertex-cut:0; do
            plan 0 "$T/cliques" --ranks 2 --tiles 2 --order none --hidden 11 --machine "$T/$machine.json" --json plan.json
            hides "${case%%:*}" "$half * ${case#*:}"
        done
    done
    for case in "tiles:600 + 107 / 2" "own-first:800 + 7 / 2"; do
        plan 0 "$T/cliques" --ranks 2 --tiles 4 --order none --hidden 11 --sum-order "${case%%:*}" \
            --machine "$T/gathers-10.json" --json plan.json
        hides 2x1x1 "0.5 * (${case#*:}) / 814"
        hides halo "0.5 * (800 + 7 / 2) / 825"
    done
    plan 0 "$T/cliques" --ranks 2 --tiles 2 --no-overlap --machine "$T/gathers-10.json" --json plan.json
    hides halo 0
}

# Scores of attention take time: for each layer two walks of 190 entries with loops, 2 heads of 3 columns, then one of 2
# classes. So do two products of 34 features with 10 columns. Two ranks of 1D share both. Columns of a grid share products,
# heads and classes, but each waits for all entries, and has the score of the one head of classes.
walks() {
    sed 's/\("task_seconds": \).*/\10, "features_flops_per_second": 1e9/; s/"cores": .*/"cores": 1,/
         s/"\(stream_bytes\|gemm_flops\|gather_[0-9]*_bytes\)_per_second": [^,]*/"\1_per_second": 1e24/' \
        "${top_srcdir:-${srcdir:-.}}/examples/machines/cluster-1gbe.json" >"$T/scores.json"
    plan 0 "$karate" --ranks 2 --model gat --heads 2 --hidden 3 --dropout 0 --machine "$T/scores.json" --json plan.json
    for name in 2x1x1 1x2x1; do
        awk -v seconds="$(mean_of $name compute_seconds)" -v columns=${name#*x} 'BEGIN {
            shared = 190 * 2e-9 * (2 * 160 + 6 * 32 + 2 * 32) + 34 * 10 * 4e-9
            wanted = shared / 2 + 190 * (4 * 30e-9 + 2e-9 * 160) / (columns + 0 == 2 ? 1 : 2)
            print seconds, wanted; exit !(seconds > 0.999 * wanted && seconds < 1.001 * wanted) }' || die "$name: other seconds"
    done
}

# The largest of two layers' outputs has four tasks for each of a rank's 3 row tiles, and another layer's six passes. It
# reads and writes 56 bytes for each of 17 rows and 5 columns, beside these passes, of 4 bytes.
largest() {
    sed 's/"\(gemm_flops\|gather_[0-9]*_bytes\)_per_second": [^,]*/"\1_per_second": 1e24/
         s/"stream_bytes_per_second": [^,]*/"stream_bytes_per_second": 1e3, "features_flops_per_second": 1e24/
         s/"task_seconds": .*/"task_seconds": 1/; s/"cores": .*/"cores": 1,/' \
        "${top_srcdir:-${srcdir:-.}}/examples/machines/cluster-1gbe.json" >"$T/tasks.json"
    for jump in none max; do
        plan 0 "$karate" --ranks 2 --tiles 6 --hidden 5 --dropout 0 --classifier linear --jump $jump \
            --machine "$T/tasks.json" --json plan.json
        for name in 2x1x1 1x2x1; do
            mean_of $name compute_seconds >$jump-$name
        done
    done
    for name in 2x1x1:3 1x2x1:6; do
        paste none-${name%:*} max-${name%:*} | awk -v tiles=${name#*:} '{
            more = $2 - $1; wanted = 4 * tiles + 6 + (24 + 56) * 17 * 5 / 1e3
            print more, wanted; exit !(more > 0.999 * wanted && more < 1.001 * wanted) }' || die "$name: other seconds"
    done
}

# Two cliques that no edge joins, on two ranks. Only metrics and parameters travel, ten bytes in a second: 16 doubles, the
# gradients to rank 0 and the values back.
parameters() {
    awk 'BEGIN { for (a = 0; a < 40; a++) for (b = 0; b < 40; b++) if (a != b && int(a / 20) == int(b / 20)) print a, b }' |
        dataset "$T/apart" 40 9
    plan 0 "$T/apart" --ranks 2 --tiles 2 --order none --hidden 11 --no-bias --machine "$T/gathers-10.json" --json plan.json
    for name in halo 2x1x1; do
        awk -v seconds="$(planned_of $name communication_seconds)" 'BEGIN {
            print seconds; wanted = (128 + 2 * 4 * (9 * 11 + 11 * 3)) / 10
            exit !(seconds > 0.999 * wanted && seconds < 1.001 * wanted) }' || die "$name: other seconds"
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
# hidden layers and classes are about 128 wide.
formulas() {
    plan 0 --like papers --ranks 64 --hidden 144 --layers 3 --product-order gemm --json plan.json --quiet
    words_of_grids >words
    for case in "64x1x1 2*63/64" "32x1x2 2/2*31/32+2/64" "8x1x8 2/8*7/8+2*7/64" "8x8x1 4/8*7/8" "4x4x4 6/16*3/4"; do
        planned=$(sed -n "s/^${case%% *} //p" words)
        [ -n "$planned" ] || die "no ${case%% *} in: $(cat words)"
        awk "BEGIN { formula = (${case#* }) * 111059956 * (144 + 144 + 172); ratio = $planned / formula
            print \"${case%% *}\", ratio; exit !(ratio > 0.8 && ratio < 1.2) }" || die "${case%% *}: $planned words"
    done
}

# Fewer words on each grid than on the one before it.
fewer_words() { # RANKS GRID ...
    plan 0 --like proteins --ranks "$1" --hidden 128 --json plan.json --quiet
    shift
    words_of_grids >words
    for grid; do
        sed -n "s/^$grid //p" words
    done | awk -v grids=$# 'NR > 1 && !($1 < last) { bad = 1 } { last = $1; print } END { exit bad || NR != grids }' ||
        die "$(cat words)"
}

# CAGNET's order, 1D > 1.5D > 2D > 3D; where replication c is half of sqrt(P), 1.5D is between 2D and 3D.
words_in_order() {
    fewer_words 64 64x1x1 32x1x2 8x8x1 4x4x4
    fewer_words 512 512x1x1 256x1x2 32x16x1 8x8x8
    fewer_words 512 32x16x1 32x1x16 8x8x8
}

distributions() {
    cd "$T" || exit 1
    run 2 bench distributions "$T/directed" --epochs 3 --repetitions 1 --workers 1 --tiles 6 --json d.json ||
        die "$(cat out err)"
    [ ! -s err ] && grep -q '^auto is ' out || die "$(cat out err)"
    [ "$(grep -c '"bytes_received_ratio": 1.0' d.json)" -eq 7 ] && [ "$(grep -c '"messages_ratio": 1.0' d.json)" -eq 7 ] ||
        die "$(cat d.json)"
}

machines() {
    for file in "${top_srcdir:-${srcdir:-.}}"/examples/machines/*.json; do
        case $file in /*) ;; *) file=$here/$file ;; esac
        plan 0 --like arxiv --ranks 64 --machine "$file"
        grep -q '^its memory' out || die "$(cat out)"
    done
    sed 's/"gemm_flops_per_second": [^,]*/"gemm_flops_per_second": "fast"/' "$file" >wrong.json
    ill_planned 1 "wrong.json: rank.gemm_flops_per_second is \"fast\" (expected a number from 1 to" \
        --like arxiv --ranks 4 --machine wrong.json
    for figure in rank.memory_bytes:1e30 rank.memory_bytes:0 rank.cores:2.3e11 rank.cores:1.5 rank.cache_bytes:1e30 \
        rank.task_seconds:-1 node.ranks:1e30 network.bytes_per_second:1e300 rank.cores:3e9 node.ranks:3e9 \
        node.ranks:2.5; do
        key=${figure%:*} value=${figure#*:}
        sed "/\"${key%.*}\": {/,/}/s/\"${key#*.}\": [^,]*/\"${key#*.}\": $value/" "$file" >wrong.json
        ill_planned 1 "wrong.json: $key is " --like arxiv --ranks 4 --machine wrong.json
        grep -q "(expected a .*number from [01] to 1e+" err || die "$(cat err)"
    done
    echo '{"rank": {' >broken.json
    ill_planned 1 "broken.json: line " --like arxiv --ranks 4 --machine broken.json
    plan 0 --like arxiv --ranks 64 --machine perlmutter
    grep -qi 'perlmutter' out || die "$(cat out)"
    ill_planned 2 "no such machine (expected a file, or cluster-1gbe, dgx-a100, perlmutter, summit)" \
        --like arxiv --ranks 4 --machine fugaku
    ill_planned 1 "absent.json" --like arxiv --ranks 4 --machine absent.json
}
here=$PWD

check "a directed, weighted dataset out of an edge list" directed
check "received as planned: directed, on every grid of 2 and 4 ranks" received_as_planned directed \
    "2:2x1x1 2:1x2x1 2:1x1x2 4:4x1x1 4:2x2x1 4:2x1x2 4:1x2x2 2:halo 4:halo 2:cover 4:cover 2:vertex-cut 3:vertex-cut" "$T/directed" --tiles 9 --layers 3 --hidden 7
check "received as planned: sparse features, SpMM first" received_as_planned sparse "4:2x2x1 4:1x2x2 3:halo 3:vertex-cut" "$karate" --tiles 6 \
    --product-order spmm
check "received as planned: own tiles first" received_as_planned own "4:4x1x1 4:2x2x1" "$T/directed" --tiles 9 --sum-order own-first
check "received as planned: bfloat16" received_as_planned narrow "4:2x2x1 2:1x1x2 4:halo 4:cover 4:vertex-cut" "$T/directed" --tiles 7 --precision bf16
check "received as planned: GraphSAGE" received_as_planned sage "4:4x1x1 4:2x2x1 4:2x1x2 4:halo 4:vertex-cut" "$T/directed" --tiles 9 --layers 3 \
    --hidden 7 --model sage
check "received as planned: GraphSAGE, aggregated features" received_as_planned kept "4:2x2x1" "$karate" --tiles 6 --model sage \
    --dropout 0
check "received as planned: vertex-cuts, one epoch late" received_as_planned late "2:vertex-cut 4:vertex-cut" "$T/directed" \
    --delay cd-1 --epochs 5
check "received as planned: columns normalised, blocks made again" received_as_planned deep "2:2x1x1 4:2x1x2 4:halo 4:cover 4:vertex-cut" \
    "$T/directed" --tiles 9 --model resgcn --layers 5 --recompute 2 --block-norm batch --hidden 7
check "received as planned: hops" received_as_planned hops "2:2x1x1 4:2x2x1 4:2x1x2 4:halo 4:vertex-cut" "$T/directed" --tiles 9 --model appnp \
    --hops 3
check "received as planned: GIN" received_as_planned gin "4:2x2x1 4:halo 4:vertex-cut" "$T/directed" --tiles 9 --model gin --hidden 7
check "received as planned: GraphSAGE, max" received_as_planned max "2:2x1x1 2:1x2x1 4:4x1x1 4:2x2x1 2:halo 4:halo 2:cover 4:cover
    2:1x1x2 4:2x1x2 4:1x2x2 2:vertex-cut 4:vertex-cut" "$T/directed" --tiles 9 --layers 3 \
    --hidden 7 --model sage --aggregator max
if [ -n "$SL_ALL_CASES" ]; then
    all=
    for ranks in 6 8 12 16; do
        for rows in $(seq "$ranks"); do
            for columns in $(seq "$ranks"); do
                depth=$((ranks / rows / columns))
                [ $((rows * columns * depth)) -eq "$ranks" ] && all="$all $ranks:${rows}x${columns}x$depth"
            done
        done
        all="$all $ranks:halo $ranks:cover $ranks:vertex-cut"
    done
    "$STARLING" generate community "$T/wide" --vertices 700 --classes 16 --features 18 --degree 6 --seed 1 --quiet || exit 1
    check "received as planned: on every grid of 6, 8, 12 and 16 ranks" received_as_planned many "$all" "$T/wide" --tiles 19 \
        --hidden 20 --layers 3
fi
check "the command plans what training does" same_plan
check "... and of GraphSAGE" same_plan --model sage --dropout 0
check "words of 64 ranks within 20 % of the formulas" formulas
check "words of 64 and 512 ranks in the order of the formulas" words_in_order
check "the command plans vertex-cuts, exact and late" cut_plan
check "... and of GraphSAGE, SpMM first, bfloat16, unscaled sums" cut_plan --model sage --product-order spmm \
    --precision bf16 --partial-sums unscaled
check "... and out of files" cut_files
check "two cliques, and a machine whose sparse products alone take time" cliques
check "what is hidden behind messages" overlap
check "parameters are counted once" parameters
check "scores of attention take time" walks
check "the largest of several layers' outputs takes time" largest
check "own tiles that sums meet last" own_tiles
check "memory of a halo, a cover and a vertex-cut: as the command plans" memory
check "memory of links: of a graph that is like another" like
check "auto: a grid, and why" automatic
check "auto: a vertex-cut, a halo or a cover, with the parts that it counted" handed_over
check "... and with --allow-inexact, a late vertex-cut" inexact
check "inexact, and no choice: one sentence" refused "--allow-inexact: expected --distribution auto" train "$karate" \
    --distribution 1d --allow-inexact
check "... nor with a grid" refused "--allow-inexact: expected --distribution auto" train "$karate" --grid 1x1x1 \
    --allow-inexact
check "bench distributions on 2 ranks" distributions
check "machine files" machines
check "no ranks: one sentence" ill_planned 2 "--ranks: expected a whole number, 1 to" "$karate" --ranks 0
check "ranks are missing: one sentence" ill_planned 2 "--ranks is missing" "$karate"
check "more ranks than vertices: one sentence" ill_planned 2 "--ranks 64: the graph has 34 vertices" "$karate" --ranks 64
check "a grid is not planned for: one sentence" ill_planned 2 "--grid: plan sets it itself" "$karate" --ranks 4 --grid 2x2x1
check "a delay that is none: one sentence" ill_planned 2 "--delay cd-x: expected cd-0, cd-1" "$karate" --ranks 4 --delay cd-x
check "neither dataset nor --like: one sentence" ill_planned 2 "expected a DATASET or --like NAME" --ranks 4
finish
