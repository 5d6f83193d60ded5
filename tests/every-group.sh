#!/bin/sh
# Groups of ranks give the results of one rank: models, layers and distributions inside the groups (tests/every_group.c). Some
# cases; with SL_EVERY=all (make check-every) every case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike=trainings

[ -x "${top_builddir:-.}/tests/every_group" ] || { echo "no tests/every_group"; exit 77; }

[ "$SL_EVERY" != all ] || seconds=7200
for ranks in 2 3 4; do
    check "groups of $ranks ranks" trainings "$ranks" every_group "${SL_EVERY:-some}"
done
finish
