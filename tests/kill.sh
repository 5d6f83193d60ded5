#!/bin/sh
# Runs that are killed at random moments go on to the same bits (tests/kill.py). SL_KILLS is how many kills there are, 6 by
# default; "make check-kill" has 200, which takes half an hour. SL_KILL_SEED repeats the moments of a run.
MPIRUN=${MPIRUN:-none} # without a launcher, one rank alone
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
[ -r /proc/self/task ] || { echo "no /proc"; exit 77; }
[ "$MPIRUN" != none ] || MPIRUN=
program=$STARLING
[ -x "$(dirname "$STARLING")/.libs/$(basename "$STARLING")" ] && program=$(dirname "$STARLING")/.libs/$(basename "$STARLING")
python3 "${top_srcdir:-${srcdir:-.}}/tests/kill.py" "$program" "${SL_KILLS:-6}" "${SL_KILL_SEED:-$(date +%s)}" $MPIRUN
