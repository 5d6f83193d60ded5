#!/bin/sh
# Halos and vertex-cuts of 2, 3, 4 and 8 ranks give the results of one rank (tests/every_cut.c). $SL_GRID_RANKS: others. Some
# cases; with SL_EVERY=all (make check-every) every case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike=trainings

[ -x "${top_builddir:-.}/tests/every_cut" ] || { echo "no tests/every_cut"; exit 77; }

[ "$SL_EVERY" != all ] || seconds=7200
for ranks in ${SL_GRID_RANKS:-2 3 4 8}; do
    check "cuts for $ranks ranks" trainings "$ranks" every_cut
done
finish
