#!/bin/sh
# Seconds of `starling plan`, by hand: on a machine where all is free but one thing. Two ranks have 200 rows each of a graph with 24
# features; a network has layers of 16 and 4 columns. So a factor that changes in a formula changes a number here.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
"$STARLING" generate community "$T/graph" --vertices 400 --classes 4 --degree 8 --features 24 --seed 1 --quiet || exit 1

# planned RANK NETWORK ARGUMENT ...: the JSON of a plan in one line in $T/plan. RANK and NETWORK have what is not free, as
# "key": value.
planned() {
    rank=$1 network=$2
    shift 2
    free='"gemm_flops_per_second": 1e24, "features_flops_per_second": 1e24, "draws_per_second": 1e24, "stream_bytes_per_second": 1e24'
    free="$free, \"gather_64_bytes_per_second\": 1e24, \"gather_1024_bytes_per_second\": 1e24, \"task_seconds\": 1e-24"
    # Of two equal keys the last one counts.
    cat >"$T/machine.json" <<JSON
{"name": "free", "rank": {"cores": 1, "memory_bytes": 64e9, "cache_bytes": 32e6, $free${rank:+, $rank}},
 "node": {"ranks": 1, "latency_seconds": 1e-24, "bytes_per_second": 1e24},
 "network": {"latency_seconds": 1e-24, "bytes_per_second": 1e24${network:+, $network}}}
JSON
    exits 0 plan "$T/graph" --ranks 2 --machine "$T/machine.json" --tiles 2 --balance rows --order none --hidden 16 --dropout 0.5 \
        --product-order gemm --json "$T/plan.json" --quiet "$@"
    tr -d '\n ' <"$T/plan.json" >"$T/plan"
}

# The seconds are as good as equal.
near() { # WHAT FOUND EXPECTED
    awk -v found="$2" -v expected="$3" 'BEGIN { exit !((found - expected) ^ 2 <= (1e-9 * expected) ^ 2) }' </dev/null ||
        die "$1: $2 s, expected $3"
}
found() { # FIELD NAME: of the distribution of that name
    sed -n 's/.*"'"$1"'":\([-0-9.e+]*\),[^{}]*"distribution":"'"$2"'".*/\1/p' "$T/plan"
}
seconds() { # FIELD RANK NETWORK NAME EXPECTED
    planned "$2" "$3"
    near "$4" "$(found "$1" "$4")" "$5"
}

# 2 n in out flops a product: forward and for the weights, and in the second layer for the gradient of its input.
check "dense products" seconds compute_seconds '"gemm_flops_per_second": 1e6' '' 1d 0.384 # 200 (4 24 16 + 6 16 4) / 1e6
# A layer: three for its product and six passes over rows; four walks over two tiles each.
check "tasks" seconds compute_seconds '"task_seconds": 1' '' 1d 26
check "messages" seconds communication_seconds '' '"latency_seconds": 1' 1d 9 # four walks, metrics, two trees of each layer
# 200 rows of 16 and 4 columns each way, the parameters of both layers (with biases) twice, 128 bytes of metrics.
check "bytes of messages" seconds communication_seconds '' '"bytes_per_second": 1' 1d 35872
# Six passes over rows of 16 and 4 columns; four walks that read 1,835 entries of 6 bytes and write these rows.
check "memory" seconds compute_seconds '"stream_bytes_per_second": 1' '' 1d 172040

# Two groups of a rank: with both hops only parameters travel, in two trees of each layer. With one hop, 256 rows of 16 columns do,
# too.
groups() { # NETWORK HOPS EXPECTED
    planned '' "$1" --groups 2x1
    near groups "$(sed -n 's/.*"preload_hops":'"$2"',[^{}]*"between_seconds":\([-0-9.e+]*\),.*/\1/p' "$T/plan")" "$3"
}
check "messages between groups, all hops" groups '"latency_seconds": 1' 2 4
check "messages between groups, one hop" groups '"latency_seconds": 1' 1 6
check "bytes between groups, all hops" groups '"bytes_per_second": 1' 2 3744
check "bytes between groups, one hop" groups '"bytes_per_second": 1' 1 20128
finish
