#!/bin/sh
# Batches on several ranks take the handles and tags of the batches before (tests/test_batches.c). A run that is stopped between
# two steps of an epoch goes on with the next one (tests/every_step.c).
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
program=${top_builddir:-.}/tests/test_batches
case $program in /*) ;; *) program=$PWD/$program ;; esac

steps() { # RANKS
    timeout 240 "$MPIRUN" -n "$1" "$program" || die "exit status $?"
}

for ranks in 2 3; do
    check "sixty steps register no handle and take no tag on $ranks ranks, also where columns are cut" steps $ranks
done
for ranks in 1 2; do
    check "stopped after every step on $ranks, and resumed: the same bits" trainings $ranks every_step
done
finish
