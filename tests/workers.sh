#!/bin/sh
# What a training says where StarPU was built for fewer CPU workers than there are cores: one note, unless that is what the user
# wants. hwloc describes a machine of one core more than StarPU's limit to Starling and to StarPU, which starts all workers it can.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
build=$(dirname "$STARLING")
limit=$("$STARLING" info machine | sed -n 's/.*built for at most \([0-9]*\) CPU workers$/\1/p')
[ -n "$limit" ] || { echo "starling info machine has no limit of workers"; exit 1; }
note="$limit of $((limit + 1)) CPU workers: this StarPU was built for no more; ./bootstrap --own-starpu builds one for all cores"
STARPU_HOME=$T # what StarPU measures is not of this machine
export STARPU_HOME
unset STARPU_NCPU

# on CORES COMMAND ...: on a machine with as many cores.
on() {
    cores=$1
    shift
    HWLOC_COMPONENTS=synthetic HWLOC_SYNTHETIC="core:$cores pu:1" timeout 300 "$@" >"$T/out" 2>"$T/err" </dev/null ||
        die "status $?: $(cat "$T/out" "$T/err")"
}

silent() {
    [ ! -s "$T/err" ] || die "on stderr: $(cat "$T/err")"
}

noted() {
    [ "$(cat "$T/err")" = "starling: $note" ] || die "not the note alone: $(cat "$T/err")"
}

more_cores() {
    on $((limit + 1)) "$STARLING" train "$karate" --epochs 3 --checkpoint "$T/model"
    noted
    grep -q "on 1 rank x $limit worker" "$T/out" || die "other workers: $(cat "$T/out")"
}

predicts() {
    on $((limit + 1)) "$STARLING" predict "$T/model" "$karate" --output "$T/out.npy"
    noted
}

as_many() {
    on "$limit" "$STARLING" train "$karate" --epochs 3
    silent
}

wanted() {
    on $((limit + 1)) "$STARLING" train "$karate" --epochs 3 --workers 1
    silent
    on $((limit + 1)) env STARPU_NCPU=1 "$STARLING" train "$karate" --epochs 3
    silent
    on $((limit + 1)) "$STARLING" train "$karate" --epochs 3 --quiet
    silent
}

# Each of two ranks has half of the cores.
ranks() {
    on $((2 * limit)) "$MPIRUN" -n 2 "$STARLING" train "$karate" --epochs 3
    silent
    on $((2 * limit + 2)) "$MPIRUN" -n 2 "$STARLING" train "$karate" --epochs 3
    noted
}

# Trainings and predictions of one process.
library() {
    mkdir -p "$T/files"
    on $((limit + 1)) "$build/tests/library" all "$karate" "$T/files"
    noted
    on $((limit + 1)) "$build/tests/library" losses "$karate" epochs 3 quiet yes
    silent
}

check "one core more than workers: a note" more_cores
check "a prediction, too" predicts
check "as many cores as workers" as_many
check "fewer workers on purpose, or --quiet" wanted
check "the library: once in a process" library
[ -z "$MPIRUN" ] || check "cores that ranks share" ranks
finish
