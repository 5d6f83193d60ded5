#!/bin/sh
# Rows that travel between ranks, without a network (tests/test_exchange.c).
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
program=${top_builddir:-.}/tests/test_exchange
case $program in /*) ;; *) program=$PWD/$program ;; esac

exchange() { # RANKS
    timeout 60 "$MPIRUN" -n "$1" "$program" || die "exit status $?"
}

for ranks in 2 3 4 5; do
    check "rows are added and copied on $ranks ranks" exchange $ranks
done
finish
