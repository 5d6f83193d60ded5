#!/bin/sh
# Calls that fail within the program, one by one (tests/faults.py). SL_FAULTS is how many of each command and kind: 2 by default,
# all with "make check-faults", which takes hours. SL_FAULTS_ON_RANKS is how many of each on two ranks: 1 of a training by
# default, 5 of seven commands with "make check-faults", about 200 in all, in ten minutes; 0: all.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
[ -z "$SL_SANITIZED" ] || { echo "the sanitizer's calls are in the way"; exit 77; }
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
source=${top_srcdir:-${srcdir:-.}}/tests
${CC:-cc} -O1 -shared -fPIC -o "$T/shim.so" "$source/fault_shim.c" -ldl 2>"$T/err" || { echo "no shared object: $(head -n 1 "$T/err")"; exit 77; }
program=$STARLING
[ -x "$(dirname "$STARLING")/.libs/$(basename "$STARLING")" ] && program=$(dirname "$STARLING")/.libs/$(basename "$STARLING")
LD_PRELOAD=$T/shim.so "$program" version >"$T/out" 2>&1 || { echo "no LD_PRELOAD here: $(cat "$T/out")"; exit 77; }
FAULTS_ONLY=${FAULTS_ONLY-train,convert,predict,predict ids,plan,info,partition,report}
FAULTS_ON_RANKS=${FAULTS_ON_RANKS-train}
export FAULTS_ONLY FAULTS_ON_RANKS
python3 "$source/faults.py" "$program" "$T/shim.so" "$karate" "${SL_FAULTS:-2}" "$MPIRUN" "${SL_FAULTS_ON_RANKS:-1}"
