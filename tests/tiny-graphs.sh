#!/bin/sh
# Graphs of one to three vertices train on 1 to 5 ranks, however these share them (tests/tiny_graphs.c).
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike=trainings

[ -x "${top_builddir:-.}/tests/tiny_graphs" ] || { echo "no tests/tiny_graphs"; exit 77; }

for ranks in 1 2 3 4 5; do
    check "graphs of at most three vertices on $ranks" trainings "$ranks" tiny_graphs
done
finish
