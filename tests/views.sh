#!/bin/sh
# Two trainings at the same time, each on a view of two of four ranks, are what they are alone: losses, weights and traffic.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1

# What comes from rank 0, 1, … of a training, sorted: ranks print in any order.
both() {
    cd "$T" || exit 1
    for which in 0 1; do
        "$MPIRUN" -n 2 "$top_builddir/tests/two_views" $which >alone.$which 2>err || die "training $which alone: $(cat err)"
    done
    "$MPIRUN" -n 4 "$top_builddir/tests/two_views" >out 2>err || die "two views: $(cat err)"
    sort alone.0 alone.1 >alone
    sort out >together
    [ "$(wc -l <alone)" = 4 ] || die "not four ranks: $(cat alone)"
    grep -q ' 0 bytes received' alone && die "no messages: $(cat alone)"
    diff alone together >&2 || die "they differ"
}

alone() {
    cd "$T" || exit 1
    "$top_builddir/tests/two_views" >out 2>err || die "$(cat err)"
    [ "$(wc -l <out)" = 2 ] && [ "$(sort -u out | wc -l)" = 1 ] || die "$(cat out)"
}

check "a view of one process" alone
check "two views of two ranks: the same bits, the same traffic" both
finish
