#!/bin/sh
# Every grid of 1, 2, 3, 4, 6, 8 and 9 ranks gives the results of one rank (tests/every_grid.c). $SL_GRID_RANKS: others.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1

[ -x "${top_builddir:-.}/tests/every_grid" ] || { echo "no tests/every_grid"; exit 77; }

every_grid() { # RANKS
    start=$(date +%s)
    timeout 600 "$MPIRUN" -n "$1" "${top_builddir:-.}/tests/every_grid" >"$T/out" 2>&1 </dev/null ||
        die "exit status $?: $(cat "$T/out")"
    cat "$T/out"
    grep -q "^[1-9][0-9]* cases on $1 ranks, 0 failed$" "$T/out" || die "no summary"
    echo "$(($(date +%s) - start)) s"
}

for ranks in ${SL_GRID_RANKS:-1 2 3 4 6 8 9}; do
    check "every grid of $ranks ranks" every_grid "$ranks"
done
finish
