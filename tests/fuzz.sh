#!/bin/sh
# Files that nobody wrote, for every reader (tests/fuzz/readers.c). By default the inputs of tests/fuzz/seeds.py alone; with
# SL_FUZZ_SECONDS, libFuzzer changes them for so many seconds, shared by all readers, in the build of Clang's sanitizers in
# SL_FUZZ_BUILD, from the random seed SL_FUZZ_SEED, or any. What libFuzzer finds stays in fuzz/found there, and is made small by hand:
# SL_FUZZ_READER=NAME tests/fuzz/readers -minimize_crash=1 -runs=100000 FILE. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
source=$(cd "${top_srcdir:-${srcdir:-.}}" && pwd)
replay=$(cd "${top_builddir:-.}" && pwd)/tests/test_readers

# Source files that open a file, and the reader of it that is tried; "own" files are the program's or the system's.
openings() {
    cat <<'END'
src/bench/train.c own
src/checkpoint/checkpoint.c checkpoint
src/checkpoint/saved.c own
src/cli/signals.c own
src/cli/train_verify.c log
src/core/file.c own
src/core/free_memory.c own
src/core/json_file.c own
src/core/machine.c own
src/core/mapped.c own
src/core/rates.c machine
src/core/remembered.c remembered
src/data/formats/directory.c directory
src/data/formats/directory_write.c own
src/data/formats/formats.c unnamed
src/data/formats/json_members.c graphsaint
src/data/formats/matlab_file.c matlab
src/data/formats/npy.c npy
src/data/formats/npz_archive.c archive
src/data/formats/npz_write.c own
src/data/formats/text.c edge_list
src/data/partition/parts_file.c parts
src/deploy/json_alone.c checkpoint
src/log/epoch_table.c epoch_table
src/log/report.c own
src/recipe/config_file.c json
src/report/runs.c log
END
}

every_opening() {
    (cd "$source" && grep -lE '\<(fopen|gzopen|sl_file_(open|stream|append|map)|sl_text_open_file|sl_json_(parse|read|read_file)|zip_open|open)\(' src/*/*.c src/*/*/*.c) |
        sort >"$T/there"
    openings | cut -d ' ' -f 1 | diff "$T/there" - || die "files that are opened, and the list of this test"
    openings | cut -d ' ' -f 2 | grep -v '^own$' | sort -u >"$T/named"
    "$replay" list | cut -d ' ' -f 1 | sort >"$T/readers"
    comm -23 "$T/named" "$T/readers" | grep . && die "no such reader"
    return 0
}

seeds() {
    command -v python3 >/dev/null || skip "no python3"
    python3 "$source/tests/fuzz/seeds.py" "$STARLING" "$replay" "$karate" "$T/seeds" || die "no inputs"
}

# A reader takes what it is made for, if the library for it is there: so many of its inputs are refused.
takes() { # READER REFUSED
    [ -d "$T/seeds/$1" ] || skip "no inputs"
    "$replay" "$1" "$T/seeds/$1"/* >"$T/out" 2>&1 || die "$(cat "$T/out")"
    [ "$(grep '^    ' "$T/out" | grep -Evc 'this build|built without')" -eq "${2:-0}" ] || die "$(cat "$T/out")"
}

# Files in memory, where there is a place for them.
memory=$(mktemp -d /dev/shm/starling-XXXXXX 2>/dev/null) || memory=$T
trap 'rm -rf "$T" "$memory"' EXIT

fuzz() { # READER SECONDS
    [ -d "$T/seeds/$1" ] || skip "no inputs"
    found=$SL_FUZZ_BUILD/fuzz/found/$1-
    mkdir -p "$T/new/$1" "$SL_FUZZ_BUILD/fuzz/found"
    set -- "$1" "$2" "$T/new/$1" "$T/seeds/$1"
    [ ! -d "$source/tests/fuzz/corpus/$1" ] || set -- "$@" "$source/tests/fuzz/corpus/$1"
    reader=$1 seconds=$2
    shift 2
    SL_FUZZ_READER=$reader TMPDIR=$memory "$SL_FUZZ_BUILD/tests/fuzz/readers" -max_total_time="$seconds" -seed="${SL_FUZZ_SEED:-0}" -timeout=25 -rss_limit_mb=2048 \
        -max_len=65536 -close_fd_mask=1 -print_final_stats=1 -artifact_prefix="$found" "$@" >"$T/out" 2>&1 ||
        die "$(grep -v '^#\|NEW_FUNC' "$T/out" | tail -n 40)"
    sed -n 's/^stat::number_of_executed_units: *//p' "$T/out" >>"$T/tried"
}

check "every file that is opened has a reader" every_opening
check "inputs of every reader" seeds
for reader in $("$replay" list | cut -d ' ' -f 1); do
    case $reader in
    npy) check "$reader" takes "$reader" 1 ;;       # text is no numbers
    directory) check "$reader" takes "$reader" 1 ;; # an entry is there twice
    *) check "$reader" takes "$reader" ;;
    esac
    readers="$readers $reader"
done
if [ "${SL_FUZZ_SECONDS:-0}" -gt 0 ]; then
    # shellcheck disable=SC2086
    set -- $readers
    for reader; do
        check "$reader, fuzzed" fuzz "$reader" $((SL_FUZZ_SECONDS / $# + 1))
    done
    awk '{ tried += $1 } END { print tried + 0 " inputs" }' "$T/tried"
fi
finish
