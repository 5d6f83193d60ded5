#!/bin/sh
# Losses and metrics of 1 to 8 ranks, on every distribution, are what they are on one rank (tests/every_loss.c).
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike=trainings

[ -x "${top_builddir:-.}/tests/every_loss" ] || { echo "no tests/every_loss"; exit 77; }

for ranks in 1 2 3 4 8; do
    check "every loss on $ranks ranks" trainings "$ranks" every_loss
done
finish
