#!/bin/sh
# Trainings drawn at random give the results of one rank (tests/random-runs.py). A fixed handful; with SL_EVERY=all (make
# check-every) 300 draws. `make check-random N=1000 SEED=7` draws others, and prints what was refused. Runs that differ are
# printed as commands, whose graphs stay in tests/random-graphs of the build folder.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
export MPIRUN

draw() { # COUNT SEED OPTION ...
    python3 "${top_srcdir:-${srcdir:-.}}/tests/random-runs.py" "$STARLING" --folder "${top_builddir:-.}/tests/random-graphs" \
        --draws "$@"
}

draws() { # COUNT SEED
    draw "$1" --seed "$2" >"$T/out" 2>&1 || die "$(cat "$T/out")"
    grep -qE "^$1 draws: .* 0 failed$" "$T/out" || die "no summary: $(cat "$T/out")"
}

if [ -n "$SL_DRAWS" ]; then
    draw "$SL_DRAWS" --seed "$SL_SEED" --verbose
    exit
fi
count=8
[ "$SL_EVERY" != all ] || count=300
check "$count draws give the results of one rank" draws $count 5
finish
