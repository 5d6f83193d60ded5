#!/bin/sh
# A reducer with row operands and two outputs, and the largest of neighbours, on every distribution of 1 to 8 ranks
# (tests/every_reducer.c).
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike=trainings

[ -x "${top_builddir:-.}/tests/every_reducer" ] || { echo "no tests/every_reducer"; exit 77; }

for ranks in 1 2 3 4 6 8; do
    check "every reducer on $ranks ranks" trainings "$ranks" every_reducer
done
finish
