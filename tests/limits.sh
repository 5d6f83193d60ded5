#!/bin/sh
# The limits of sizes (docs/DATASETS.md), each reached once: the program works, as a GCN in double precision and as one rank, or
# refuses in one sentence. "make check-limits" has more distributions and models, and 64 ranks. One line per case (tests/limits.py).
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
source=${top_srcdir:-${srcdir:-.}}/tests
case $source in /*) ;; *) source=$PWD/$source ;; esac
[ -n "$MPIRUN" ] || [ "$SL_TEST_MPI" != 1 ] || MPIRUN=$(command -v mpirun)
# shellcheck source=tests/ranks.sh
[ -z "$MPIRUN" ] || . "$source/ranks.sh"

at_limit() { # CASE
    mkdir "$T/$1" && cd "$T/$1" || exit 1
    karate=$karate python3 "$source/limits.py" "$STARLING" "$MPIRUN" "$1" ${SL_LIMITS:+all} || exit 1
    rm -rf "${T:?}/$1"
}

check "one vertex" at_limit one_vertex
check "no edge" at_limit no_edges
check "features that are 0, and none" at_limit zero_features
check "one class" at_limit one_class
check "no training vertex" at_limit no_training
check "65,536 classes" at_limit classes
check "65,536 hidden units" at_limit width
check "1,000 layers" at_limit layers
check "a vertex with a million neighbours" at_limit star
check "more words than 32 bits count" at_limit entries
[ -z "$SL_LIMITS" ] || check "64 ranks" at_limit many_ranks
finish
