#!/bin/sh
# Signals on any rank: an orderly end, or a sentence that names the rank that died. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
# A rank that is left has a second between the launcher's SIGTERM and its SIGKILL, to say which rank is gone.
OMPI_MCA_odls_base_sigkill_timeout=1
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' || { echo "not Open MPI"; exit 77; }

# The process of a rank among those that $launcher started.
process_of() { # RANK
    for p in /proc/[0-9]*; do
        [ "$(awk '{ print $4 }' "$p/stat" 2>/dev/null)" = "$launcher" ] &&
            tr '\0' '\n' 2>/dev/null <"$p/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1" && echo "${p#/proc/}"
    done
}

# A shell without terminal ignores SIGINT in what it starts in the background.
env --default-signal true 2>/dev/null || { echo "env of coreutils 8.31 or later is not there"; exit 77; }

# Trains for ever, sends SIGNAL to a rank when the log has more than three ($most) epochs, and waits for the end.
signalled() { # SIGNAL RANK RANKS OPTION ...
    signal=$1 rank=$2 ranks=$3
    shift 3
    rm -f "$T/log" "$T/ck"
    env --default-signal "$MPIRUN" --timeout 60 -n "$ranks" "$STARLING" train "$@" --epochs 10000000 --workers 1 \
        --log "$T/log" --checkpoint "$T/ck" >"$T/out" 2>"$T/err" </dev/null &
    launcher=$!
    tries=0
    until [ "$(grep -c '"event":"epoch"' "$T/log" 2>/dev/null)" -gt "${most:-3}" ] 2>/dev/null; do
        sleep 0.2
        tries=$((tries + 1))
        [ $tries -lt 150 ] || die "no epochs: $(cat "$T/err")"
    done
    process=$(process_of "$rank")
    [ -n "$process" ] || die "no process of rank $rank below $launcher"
    kill "-$signal" "$process"
    wait "$launcher"
    status=$?
}

orderly() { # SIGNAL RANK
    signalled "$1" "$2" 3 "$karate" --distribution 1d
    [ $status -eq 0 ] || die "exit status $status: $(cat "$T/err")"
    grep -q '^stopped on request after epoch [1-9]' "$T/out" || die "$(cat "$T/out")"
    tail -n 1 "$T/log" | grep -q '"stopped":true' || die "$(tail -n 1 "$T/log")"
    [ -s "$T/ck" ] || die "no checkpoint"
}

# Results of whole epochs in a log, but for evaluations.
epochs_of() { # LOG
    grep '"event":"epoch"' "$1" | grep -oE '"epoch":[0-9]+|"loss":[^,]*'
}

# Between two steps of an epoch. The run goes on with the next step, and has the bits of a run that was never stopped.
within_epoch() { # SIGNAL RANK
    "$STARLING" generate community "$T/small" --vertices 600 --classes 4 --degree 6 --features 8 --seed 3 >"$T/out" ||
        die "$(cat "$T/out")"
    set -- "$1" "$2" 2 "$T/small" --hidden 4 --groups 2x1 --batches co:16 --max-hop 1 --resample 2 --dropout 0.3 --keep last
    most=0
    for try in 1 2 3; do # the end of an epoch has one chance in sixteen
        signalled "$@"
        [ $status -eq 0 ] || die "exit status $status: $(cat "$T/err")"
        grep -q '^stopped on request after epoch ' "$T/out" || break
    done
    said=$(sed -n 's/^stopped on request after step \([0-9]*\) of \([0-9]*\) of epoch \([0-9]*\)$/\1 \2 \3/p' "$T/out")
    read -r step of epoch <<EOF
$said
EOF
    echo "step $step of $of of epoch $epoch"
    [ -n "$epoch" ] && [ "$step" -lt "$of" ] || die "$(cat "$T/out")"
    tail -n 1 "$T/log" | grep -q "\"epochs\":$((epoch - 1)),\"unfinished\":{\"steps\":$step,\"of\":$of},\"stopped\":true" ||
        die "$(tail -n 1 "$T/log")"
    tail -n 1 "$T/log" | grep -q "\"loss\":null,.*\"kept_epoch\":$((epoch - 1))," && grep -q '^  loss  *-$' "$T/out" ||
        die "the loss of an epoch beside weights of another one: $(cat "$T/out")"
    [ "$(grep -c '"event":"epoch"' "$T/log")" -eq $((epoch - 1)) ] || die "other epochs in the log"
    shift 3
    cd "$T" || exit 1
    run 2 train "$T/small" --resume ck --checkpoint rest --epochs $((epoch + 1)) --log log || die "$(cat err)"
    grep -q "\"first_epoch\":$epoch,.*\"first_step\":$((step + 1))" log || die "another beginning: $(cat log)"
    run 2 train "$@" --workers 1 --checkpoint once --epochs $((epoch + 1)) --log whole || die "$(cat err)"
    epochs_of log >one
    epochs_of whole | diff - one || die "other losses"
    tail -c 800 once >one
    tail -c 800 rest | cmp one - || die "other parameters"
}

# While the graph is read or cut, on any rank: one sentence, and no rank waits for another.
early() { # SIGNAL RANK
    [ -d "$T/big" ] || "$STARLING" generate community "$T/big" --vertices 60000 --classes 8 --degree 20 --features 64 --quiet ||
        die "no graph"
    env --default-signal "$MPIRUN" --timeout 60 -n 2 "$STARLING" train "$T/big" --order metis --epochs 10000000 --workers 1 \
        --quiet --checkpoint "$T/never" >"$T/out" 2>"$T/err" </dev/null &
    launcher=$!
    tries=0
    until process=$(process_of "$2"); [ -n "$process" ] && catches "$process"; do
        sleep 0.1
        tries=$((tries + 1))
        [ $tries -lt 300 ] || die "no rank: $(cat "$T/err")"
    done
    kill "-$1" "$process"
    wait "$launcher"
    status=$?
    [ $status -eq 0 ] || die "exit status $status: $(cat "$T/err")"
    sentence "stopped on request before the end of an epoch: nothing to save" "$T/err"
    [ ! -e "$T/never" ] || die "a checkpoint"
}

killed() { # RANK
    signalled KILL "$1" 3 "$karate" --distribution 1d
    [ $status -ne 0 ] && [ $status -ne 124 ] || die "exit status $status"
    [ "$(grep -c "^starling: rank $1 on host $(uname -n) is gone" "$T/err")" -eq 1 ] || die "$(cat "$T/err")"
}

check "SIGTERM on rank 1" orderly TERM 1
check "SIGINT on rank 2" orderly INT 2
check "SIGTERM on rank 0" orderly TERM 0
check "SIGINT between the steps of an epoch" within_epoch INT 1
check "SIGTERM on rank 0 before the first epoch" early TERM 0
check "SIGUSR2 on rank 1 before the first epoch" early USR2 1
check "rank 1 killed" killed 1
check "rank 0 killed" killed 0
finish
