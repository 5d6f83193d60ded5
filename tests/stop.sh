#!/bin/sh
# Signals on any rank: an orderly end, or a sentence that names the rank that died. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' || { echo "not Open MPI"; exit 77; }

# The process of a rank among those that $launcher started.
process_of() { # RANK
    for p in /proc/[0-9]*; do
        [ "$(awk '{ print $4 }' "$p/stat" 2>/dev/null)" = "$launcher" ] &&
            tr '\0' '\n' 2>/dev/null <"$p/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1" && echo "${p#/proc/}"
    done
}

# Trains for ever on three ranks, sends SIGNAL to one of them when the log has epochs, and waits for the end.
signalled() { # SIGNAL RANK
    rm -f "$T/log" "$T/ck"
    "$MPIRUN" --timeout 60 -n 3 "$STARLING" train "$karate" --epochs 10000000 --workers 1 --distribution 1d \
        --log "$T/log" --checkpoint "$T/ck" >"$T/out" 2>"$T/err" </dev/null &
    launcher=$!
    tries=0
    until [ "$(grep -c '"event":"epoch"' "$T/log" 2>/dev/null)" -gt 3 ] 2>/dev/null; do
        sleep 0.2
        tries=$((tries + 1))
        [ $tries -lt 150 ] || die "no epochs: $(cat "$T/err")"
    done
    process=$(process_of "$2")
    [ -n "$process" ] || die "no process of rank $2 below $launcher"
    kill "-$1" "$process"
    wait "$launcher"
    status=$?
}

orderly() { # SIGNAL RANK
    signalled "$1" "$2"
    [ $status -eq 0 ] || die "exit status $status: $(cat "$T/err")"
    grep -q '^stopped on request after epoch [1-9]' "$T/out" || die "$(cat "$T/out")"
    tail -n 1 "$T/log" | grep -q '"stopped":true' || die "$(tail -n 1 "$T/log")"
    [ -s "$T/ck" ] || die "no checkpoint"
}

killed() { # RANK
    signalled KILL "$1"
    [ $status -ne 0 ] && [ $status -ne 124 ] || die "exit status $status"
    [ "$(grep -c "^starling: rank $1 on host $(uname -n) is gone" "$T/err")" -eq 1 ] || die "$(cat "$T/err")"
}

check "SIGTERM on rank 1" orderly TERM 1
check "SIGINT on rank 2" orderly INT 2
check "SIGTERM on rank 0" orderly TERM 0
check "rank 1 killed" killed 1
check "rank 0 killed" killed 0
finish
