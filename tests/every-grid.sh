#!/bin/sh
# Grids of 1, 2, 3, 4, 6 and 8 ranks give the results of one rank (tests/every_grid.c). $SL_GRID_RANKS: all grids of others.
# Some cases, and on 6 and 8 ranks some grids; with SL_EVERY=all (make check-every) every case and grid, and 9 ranks.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike=trainings

[ -x "${top_builddir:-.}/tests/every_grid" ] || { echo "no tests/every_grid"; exit 77; }

nine=
[ "$SL_EVERY" != all ] || seconds=7200 nine=9
for ranks in ${SL_GRID_RANKS:-1 2 3 4 6 8 $nine}; do
    check "every grid of $ranks ranks" trainings "$ranks" every_grid
done
finish
