#!/bin/sh
# Pictures of epochs over time (--trace): tests/trace.py reads them. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
command -v python3 >/dev/null 2>&1 || { echo "no python3 to read the JSON"; exit 77; }
reader=${top_srcdir:-${srcdir:-.}}/tests/trace.py
case $reader in /*) ;; *) reader=$PWD/$reader ;; esac

data() {
    "$STARLING" generate community "$T/graph" --vertices 1500 --classes 3 --degree 8 --features 6 >"$T/out" || exit 1
}

# drawn RANKS FIRST LAST OPTION ...
drawn() {
    ranks=$1 first=$2 last=$3
    shift 3
    train "drawn-$ranks" "$ranks" train "$T/graph" --tiles 6 --epochs 12 --keep last --trace trace.json "$@"
    python3 "$reader" trace.json log "$first" "$last" "$ranks" || die "trace.json is not what it says"
}

# Every number of epochs may be asked for.
wide_window() {
    drawn 2 1 12 --trace-epochs 1-9223372036854775807 --distribution 1d
    cd "$T" || exit 1
    run 1 train "$T/graph" --epochs 3 --trace none.json --trace-epochs 7 || die "$(cat err)"
    grep -q 'no task in these epochs' out err || die "no word of an empty trace"
    python3 -c 'import json; assert json.load(open("none.json"))["traceEvents"]' || die "no JSON"
}

# The same losses with a trace as without.
harmless() {
    train plain 2 train "$T/graph" --tiles 6 --epochs 12 --distribution halo
    train traced 2 train "$T/graph" --tiles 6 --epochs 12 --distribution halo --trace trace.json
    results "$T/plain/log" >"$T/one"
    results "$T/traced/log" | diff "$T/one" - || die "other losses"
}

refuses() {
    cd "$T" || exit 1
    refused "--trace-epochs 3: expected --trace FILE with it" train "$karate" --trace-epochs 3
    for epochs in 0 5-4 4-x 4- -4 x 1-2-3 1-99999999999999999999 '1- 2'; do
        refused "--trace-epochs $epochs: expected an epoch, or the first and the last one: 10-12" \
            train "$karate" --trace x --trace-epochs "$epochs"
    done
    refused "$T/nowhere/trace.json: " train "$karate" --trace "$T/nowhere/trace.json"
    refused "is the file of --trace" train "$karate" --dag x --trace x
}

check "data" data
check "one rank, three epochs after the first two" drawn 1 3 5
check "one rank, one epoch" drawn 1 7 7 --trace-epochs 7
check "two ranks, halo" drawn 2 4 9 --trace-epochs 4-9 --distribution halo --eval-every 12
check "three ranks, 1d, the last epochs" drawn 3 11 12 --trace-epochs 11-40 --distribution 1d
check "two ranks, vertex-cut" drawn 2 3 5 --distribution vertex-cut --eval-every 4
check "all epochs, and none" wide_window
check "the same losses" harmless
check "epochs that are none" refuses
finish
