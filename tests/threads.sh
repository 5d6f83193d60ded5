#!/bin/sh
# Trainings and messages with ThreadSanitizer: threads of StarPU, of MPI and of the program share records, tiles and messages.
# $STARLING and tests/test_exchange of $top_builddir are those of `tests/sanitized.sh thread`. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
source=$(cd "${top_srcdir:-${srcdir:-.}}" && pwd)
exchange=$(cd "${top_builddir:-.}" && pwd)/tests/test_exchange
TSAN_OPTIONS="suppressions=$source/tests/tsan.supp history_size=7 exitcode=66 halt_on_error=0"
export TSAN_OPTIONS

# Nothing is said of races in what was printed.
quiet() {
    ! grep -q '^WARNING: ThreadSanitizer' "$T/words" || die "$(grep -A 30 '^WARNING: ThreadSanitizer' "$T/words" | head -n 100)"
}

trains() { # RANKS OPTION ...
    [ -d "$T/graph" ] ||
        "$STARLING" generate community "$T/graph" --vertices 300 --classes 4 --degree 6 --features 20 --seed 3 --quiet || exit 1
    cd "$T" || exit 1
    rm -f log ck
    ranks=$1
    shift
    run "$ranks" train "$T/graph" --epochs 12 --tiles 6 --hidden 8 --log log --checkpoint ck --checkpoint-every 4 --eval-every 2 "$@"
    status=$?
    cat out err >words
    quiet
    [ $status -eq 0 ] || die "exit status $status: $(cat words)"
}

exchanges() {
    timeout 300 "$MPIRUN" -n 2 "$exchange" >"$T/words" 2>&1
    status=$?
    quiet
    [ $status -eq 0 ] || die "exit status $status: $(cat "$T/words")"
}

check "a training on one rank, two workers" trains 1 --workers 2
check "batches" trains 1 --workers 2 --batches co:3
check "sub-models" trains 1 --workers 2 --submodels 2
check "blocks of rows on two ranks" trains 2 --workers 1 --distribution 1d
check "halos on two ranks" trains 2 --workers 1 --distribution halo
check "delayed sums on two ranks" trains 2 --workers 1 --distribution vertex-cut --delay cd-2
check "groups on two ranks" trains 2 --workers 1 --groups 2x1 --preload-hops 1
check "an exchange of rows" exchanges
finish
