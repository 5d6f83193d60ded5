#!/bin/sh
# Every grid of 1, 2, 3, 4, 6, 8 and 9 ranks gives the results of one rank (tests/every_grid.c). $SL_GRID_RANKS: others.
# Some cases; with SL_EVERY=all (make check-every) every case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1

[ -x "${top_builddir:-.}/tests/every_grid" ] || { echo "no tests/every_grid"; exit 77; }

[ "$SL_EVERY" != all ] || seconds=7200
for ranks in ${SL_GRID_RANKS:-1 2 3 4 6 8 9}; do
    check "every grid of $ranks ranks" trainings "$ranks" every_grid
done
finish
