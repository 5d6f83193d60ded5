#!/bin/sh
# Calls that fail within the library, one by one, under a program of a user (tests/library_faults.c): the process lives on, and
# trains again. SL_FAULTS is how many of each kind; by default 6 of memory and 1 of the others, and with "make check-faults" (0)
# all. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
build=$(dirname "$STARLING")
source=${karate%/examples/karate}/tests
program=$build/tests/.libs/library_faults
[ -x "$program" ] || { echo "no shared library"; exit 77; }
LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} STARPU_NCPU=1
export LD_LIBRARY_PATH STARPU_NCPU
${CC:-cc} -O1 -shared -fPIC -o "$T/shim.so" "$source/fault_shim.c" -ldl 2>"$T/err" || { echo "no shared object: $(head -n 1 "$T/err")"; exit 77; }
LD_PRELOAD=$T/shim.so "$program" >"$T/out" 2>&1
[ $? -eq 2 ] || { echo "no LD_PRELOAD here: $(cat "$T/out")"; exit 77; }

# fails KIND POINTS OPTION VALUE ...: StarPU keeps its files in a folder of this test, which may not be writable for a moment.
fails() {
    kind=$1 points=$2
    shift 2
    mkdir -p "$T/run" "$T/home"
    cd "$T/run" || exit 1
    FAULT_KIND=none XDG_CACHE_HOME=$T/home TMPDIR=$T/home LD_PRELOAD=$T/shim.so \
        "$program" "$karate" "$kind" "${SL_FAULTS:-$points}" epochs 3 "$@" >"$T/out" 2>"$T/err" || die "$(cat "$T/out")"
    ! grep -q ' of 0 calls' "$T/out" || die "no calls of this kind"
}

# Memory of one rank of two ends, from the call that is so many hundredths of the way on: the job ends, with a sentence.
two_ranks() { # HUNDREDTH ...
    printf '%s\n' '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || unset FAULT_AT FAULT_COUNT' 'LD_PRELOAD=$SHIM exec "$@"' >"$T/rank"
    run() { # AT
        SHIM=$T/shim.so FAULT_KIND=memory FAULT_AT=$1 FAULT_ON=yes FAULT_COUNT=$T/count timeout 60 "$MPIRUN" -n 2 sh "$T/rank" \
            "$build/tests/.libs/library" losses "$karate" epochs 3 tiles 2 >"$T/out" 2>"$T/err"
    }
    run 0 || die "status $? without a failure: $(cat "$T/err")"
    calls=$(cat "$T/count")
    for part; do
        run $((calls * part / 100))
        status=$?
        [ $status -ne 0 ] && [ $status -ne 124 ] || die "call $((calls * part / 100)) of $calls: status $status, $(cat "$T/err")"
        grep -q '^library: .\|^starling: .' "$T/err" || die "call $((calls * part / 100)) of $calls: $(cat "$T/err")"
    done
}

check "memory" fails memory 6 tiles 2 loss own checkpoint out.ckpt log out.jsonl
for kind in open write sync rename map; do
    check "$kind" fails $kind 1 tiles 2 checkpoint out.ckpt log out.jsonl
done
check "memory, batches" fails memory 4 batches co:2
[ -z "$MPIRUN" ] || check "memory, one rank of two" two_ranks 20 75
if [ "$SL_FAULTS" = 0 ]; then
    # shellcheck disable=SC2046
    [ -z "$MPIRUN" ] || check "memory, one rank of two, again" two_ranks $(seq 1 98)
    SL_FAULTS=200
    check "memory, an attention" fails memory 0 model gat tiles 2
    check "memory, a maximum" fails memory 0 model sage aggregator max tiles 3
    check "memory, clusters" fails memory 0 batches clusters:4,2 fanout 3 resample 1
    check "memory, sub-models" fails memory 0 submodels 2 hidden 64 epochs 4 store .
    check "memory, bfloat16" fails memory 0 precision bf16 tiles 2
    check "memory, residual blocks" fails memory 0 model resgcn layers 3
fi
finish
