#!/bin/sh
# What ranks really send: payloads counted where MPI is given them (tests/count_payloads.c), of every distribution, against
# the runtime's counters, and of an epoch against the log and the prediction. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="exactly"
STARLING=${top_builddir:-.}/tests/counted
case $STARLING in /*) ;; *) STARLING=$PWD/$STARLING ;; esac
[ -x "$STARLING" ] || { echo "no tests/counted"; exit 77; }
SL_COUNTS=counts
export SL_COUNTS

# The list of a kind in a line of a log: the prediction's in its first line, what was counted in its last.
list() { # head|tail LOG OBJECT KIND
    "$1" -n 1 "$2" | sed -n "s/.*\"$3\":{[^}]*\"$4\":\[\([^]]*\)\].*/\1/p"
}

# Payloads of a run: what each rank sent (by 2) or received (by 3), messages (4) or bytes (5), with commas.
payloads() { # FOLDER BY COLUMN RANKS
    cat "$T/$1"/counts.* | awk -v by="$2" -v column="$3" -v ranks="$4" '
        $1 == "payload" { sum[$by] += $column }
        END { for (r = 0; r < ranks; r++) printf "%s%d", (r ? "," : ""), sum[r] }'
}

# Per epoch, the difference of two lists over so many epochs.
per_epoch() { # LIST LIST EPOCHS
    echo "$1 $2" | awk -v epochs="$3" '{ n = split($1, a, ","); split($2, b, ",")
        for (r = 1; r <= n; r++) printf "%s%.10g", (r == 1 ? "" : ","), (b[r] - a[r]) / epochs }'
}

# Bytes that the program itself gave to MPI, the most of any rank.
direct() { # FOLDER
    cat "$T/$1"/counts.* | awk '$1 == "direct" && $4 > most { most = $4 } END { print most + 0 }'
}

equal() { # WHAT LIST LIST
    [ -n "$2" ] && [ "$2" = "$3" ] || die "$1: $2, payloads $3"
}

# counted NAME RANKS EPOCHS OPTION ...: a run whose counters are what MPI was given.
counted() {
    folder=$1 n=$2 length=$3
    shift 3
    rm -rf "${T:?}/$folder"
    train "$folder" "$n" train "$@" --epochs "$length" --eval-every 1000000 --workers 1
    [ "$(ls counts.* | wc -l)" -eq "$n" ] || die "not $n counts: $(ls)"
    equal "bytes sent by the counters" "$(sed -n 's/.*"event":"end".*"bytes_sent":\[\([^]]*\)\],"traffic_per_epoch".*/\1/p' log)" \
        "$(payloads "$folder" 2 5 "$n")"
}

# difference BY COLUMN: of payloads, those of an epoch of `long` after the epochs of `short`.
difference() {
    per_epoch "$(payloads short "$1" "$2" "$n")" "$(payloads long "$1" "$2" "$n")" "$epochs"
}

# epochs RANKS FIRST EPOCHS OPTION ...: counts so many epochs after the first ones, in which nothing but a few words of what
# ranks agree on goes beside the payloads.
epochs() {
    n=$1 first=$2 epochs=$3
    shift 3
    counted short "$n" "$first" "$@"
    counted long "$n" $((first + epochs)) "$@"
    [ $(($(direct long) - $(direct short))) -le $((64 * epochs)) ] || die "$(direct short), then $(direct long) bytes beside"
}

# The prediction counts messages where they arrive.
like_prediction() {
    equal "bytes_received of the prediction" "$(list head "$T/long/log" traffic_per_epoch bytes_received)" "$(difference 3 5)"
    equal "messages of the prediction" "$(list head "$T/long/log" traffic_per_epoch messages)" "$(difference 3 4)"
}

# The log counts them where they leave.
like_log() {
    equal "bytes_sent of the log" "$(list tail "$T/long/log" traffic_per_epoch bytes_sent)" "$(difference 2 5)"
    equal "bytes_received of the log" "$(list tail "$T/long/log" traffic_per_epoch bytes_received)" "$(difference 3 5)"
    equal "messages of the log" "$(list tail "$T/long/log" traffic_per_epoch messages)" "$(difference 2 4)"
}

exactly() { # RANKS OPTION ...
    n=$1
    shift
    epochs "$n" 2 2 "$@"
    like_log
    like_prediction
}

# Bins of vertices take turns, so that epochs differ: the prediction is their mean, once messages are on their way in both
# directions.
in_turns() { # RANKS TURNS OPTION ...
    n=$1 turns=$2
    shift 2
    epochs "$n" $((2 * turns)) "$turns" "$@"
    like_prediction
}

# The prediction knows tiles of the adjacency that travel in every epoch but for their padding.
without_prediction() { # RANKS OPTION ...
    n=$1
    shift
    epochs "$n" 2 2 "$@"
    like_log
}

# A number that each rank counted, the most of any rank.
most() { # FOLDER NAME
    cat "$T/$1"/counts.* | awk -v name="$2" '$1 == name && $3 > most { most = $3 } END { print most + 0 }'
}

# drawn RANKS OPTION ...: forty more epochs of four steps, whose batches are drawn, bring an agreement each at most, and no
# thread. The first batches of a run, which depend on its length, are made with up to 60 calls of MPI more or less.
drawn() {
    n=$1
    shift
    for length in 3 43; do
        rm -rf "${T:?}/drawn-$length"
        mkdir "$T/drawn-$length"
        cd "$T/drawn-$length" || exit 1
        timeout 600 "$MPIRUN" -n "$n" "$STARLING" train "$T/drawn" "$@" --hidden 4 --epochs "$length" --eval-every 1000000 \
            --workers 1 --quiet >out 2>&1 || die "exit status $?: $(cat out)"
    done
    more=$(($(most drawn-43 direct) - $(most drawn-3 direct)))
    [ "$n" -eq 1 ] || [ "$(most drawn-43 direct)" -ge 40 ] || die "$(most drawn-43 direct) calls of MPI"
    [ "$more" -le 100 ] || die "$more calls of MPI in 40 epochs more"
    [ "$(most drawn-43 threads)" -gt 0 ] && [ "$(most drawn-43 threads)" -eq "$(most drawn-3 threads)" ] ||
        die "$(most drawn-43 threads) threads in 43 epochs, $(most drawn-3 threads) in 3"
    echo "$more calls, $(most drawn-43 threads) threads"
}

small="--tiles 9 --layers 3 --hidden 7"
check "a directed, weighted dataset out of an edge list" directed
for how in "3 1d" "4 1.5d" "4 2d" "8 3d" "3 halo" "3 vertex-cut" "3 vertex-cut --delay 0c"; do
    # shellcheck disable=SC2086
    check "${how#* }, ${how%% *} ranks" exactly ${how%% *} "$T/directed" $small --distribution ${how#* }
done
# shellcheck disable=SC2086
{
    check "vertex-cut --delay cd-2, 3 ranks" in_turns 3 2 "$T/directed" $small --distribution vertex-cut --delay cd-2
    check "tiles of the adjacency that travel" without_prediction 4 "$T/directed" $small --distribution 2d --no-cache-adjacency
    for how in "2 halo" "3 vertex-cut" "4 1.5d"; do
        check "GraphSAGE, max, ${how#* }, ${how%% *} ranks" exactly ${how%% *} "$T/directed" $small \
            --distribution ${how#* } --model sage --aggregator max
    done
}
check "GraphSAGE, max, bfloat16, a grid of depth" exactly 4 "$T/directed" --tiles 9 --precision bf16 --grid 2x1x2 --model sage \
    --aggregator max
check "GraphSAGE, max, bfloat16, vertex-cut" exactly 3 "$T/directed" --tiles 9 --precision bf16 --distribution vertex-cut \
    --model sage --aggregator max
check "bfloat16" exactly 4 "$T/directed" --tiles 9 --precision bf16 --distribution 2d
check "sparse features, SpMM first, broadcast trees" exactly 4 "$karate" --tiles 6 --product-order spmm --distribution 1.5d \
    --broadcast tree
# Ranks have all cores, so that loops have threads.
OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
export OMPI_MCA_hwloc_base_binding_policy PRTE_MCA_hwloc_default_binding_policy
"$STARLING" generate community "$T/drawn" --vertices 2400 --classes 4 --degree 6 --features 24 --seed 3 --quiet || exit 1
for how in "1 1d" "2 1d" "4 2d"; do
    # shellcheck disable=SC2086
    check "batches that are drawn, ${how#* }, ranks: ${how%% *}" drawn ${how%% *} --batches clusters:8,2 --distribution ${how#* }
done
check "samples that are drawn, ranks: 2" drawn 2 --batches co:4 --fanout 3 --resample 1 --distribution 1d
finish
