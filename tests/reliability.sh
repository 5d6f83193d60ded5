#!/bin/sh
# Nothing is lost and nothing hangs: signals, pipes, limits, a second run, files of others. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1

# Starts a long run in the background, with a log and a checkpoint, and waits for its first epochs.
begin() { # PROGRAM AND ARGUMENT ...
    rm -f "$T/log" "$T/ck"
    "$@" train "$karate" --epochs 10000000 --workers 1 --log "$T/log" --checkpoint "$T/ck" >"$T/out" 2>"$T/err" </dev/null &
    background=$!
    tries=0
    until [ "$(grep -c '"event":"epoch"' "$T/log" 2>/dev/null)" -gt 3 ] 2>/dev/null; do
        sleep 0.1
        tries=$((tries + 1))
        [ $tries -lt 300 ] || die "no epochs: $(cat "$T/err")"
    done
}

ended_in_order() {
    wait "$background"
    status=$?
    [ $status -eq 0 ] || die "exit status $status: $(cat "$T/err")"
    grep -q '^stopped on request after epoch ' "$T/out" || die "$(cat "$T/out")"
    "$STARLING" evaluate "$T/ck" "$karate" --quiet || die "no checkpoint"
}

env --default-signal true 2>/dev/null || { echo "env of coreutils 8.31 or later is not there"; exit 77; }

# A shell without terminal ignores SIGINT in what it starts in the background.
orderly() { # SIGNAL
    begin env --default-signal "$STARLING"
    kill "-$1" "$background"
    ended_in_order
}

# While the graph is read and cut there is nothing to save. METIS takes SIGTERM for an error of its own.
early() { # SIGNAL
    [ -d "$T/big" ] || "$STARLING" generate community "$T/big" --vertices 100000 --classes 8 --degree 20 --features 64 --quiet ||
        die "no graph"
    for seconds in 0 0.5; do
        env --default-signal "$STARLING" train "$T/big" --order metis --epochs 10000000 --workers 1 --quiet --checkpoint "$T/never" \
            >"$T/out" 2>"$T/err" </dev/null &
        background=$!
        tries=0
        until catches "$background"; do
            sleep 0.02
            tries=$((tries + 1))
            [ $tries -lt 1500 ] || die "no signal is caught: $(cat "$T/err")"
        done
        sleep $seconds
        kill "-$1" "$background"
        wait "$background"
        status=$?
        [ $status -eq 0 ] || die "after $seconds s: exit status $status: $(cat "$T/err")"
        sentence "stopped on request before the end of an epoch: nothing to save" "$T/err"
        [ ! -e "$T/never" ] || die "a checkpoint"
    done
}

# A shell whose terminal is closed sends SIGHUP, and the kernel sends another one.
twice() {
    begin env --default-signal "$STARLING"
    kill -HUP "$background"
    sleep 0.02
    kill -HUP "$background" 2>/dev/null
    ended_in_order
}

epochs() {
    grep -c '"event":"epoch"' "$T/log"
}

# What a parent ignores (nohup), the run ignores: it goes on.
ignored() { # SIGNAL
    begin sh -c "trap '' $1; exec \"\$@\"" sh "$STARLING"
    kill "-$1" "$background"
    before=$(epochs) tries=0
    until [ "$(epochs)" -gt $((before + 1000)) ]; do
        sleep 0.1
        tries=$((tries + 1))
        [ $tries -lt 300 ] || die "it goes on no more"
    done
    kill -TERM "$background"
    ended_in_order
}

# Who reads the output ends before the run.
broken_pipe() {
    { "$STARLING" train "$karate" --epochs 3000 --eval-every 1 --log "$T/log" --checkpoint "$T/ck" 2>"$T/err"; echo $? >"$T/status"; } |
        head -n 1 >"$T/out"
    [ "$(cat "$T/status")" -eq 1 ] || die "exit status $(cat "$T/status")"
    sentence "standard output cannot be written" "$T/err"
    tail -n 1 "$T/log" | grep -q '"event":"end"' || die "no end in the log"
    "$STARLING" evaluate "$T/ck" "$karate" --quiet || die "no checkpoint"
}

# The good checkpoint stays.
too_large() {
    "$STARLING" train "$karate" --epochs 3 --checkpoint "$T/ck" --quiet || die "no run"
    cp "$T/ck" "$T/good"
    (ulimit -f 4 && TMPDIR=$T exec "$STARLING" train "$karate" --epochs 3 --hidden 64 --checkpoint "$T/ck" --quiet) 2>"$T/err" </dev/null
    status=$?
    [ $status -eq 1 ] || die "exit status $status: $(cat "$T/err")"
    grep -q "ck: cannot write: File too large" "$T/err" || die "$(cat "$T/err")"
    cmp "$T/ck" "$T/good" || die "another checkpoint"
    ls "$T"/*.tmp 2>/dev/null && die "a temporary file"
    return 0
}

# A checkpoint on the way that is lost is told at once and in the end, to quiet runs, too.
lost_checkpoint() {
    mkdir "$T/folder"
    "$STARLING" train "$karate" --epochs 10000000 --workers 1 --quiet --checkpoint "$T/folder/ck" --checkpoint-every 2000 \
        >"$T/out" 2>"$T/err" </dev/null &
    background=$!
    for wanted in "-s $T/folder/ck" "-s $T/err" "-s $T/folder/ck"; do
        tries=0
        # shellcheck disable=SC2086
        until [ $wanted ]; do
            sleep 0.1
            tries=$((tries + 1))
            [ $tries -lt 300 ] || die "not $wanted: $(cat "$T/err")"
        done
        if [ -d "$T/folder" ]; then mv "$T/folder" "$T/away"; else mv "$T/away" "$T/folder" && rm -f "$T/folder/ck"; fi
    done
    mv "$T/away" "$T/folder"
    kill -TERM "$background"
    wait "$background"
    status=$?
    [ $status -eq 1 ] || die "exit status $status: $(cat "$T/err")"
    head -n 1 "$T/err" | grep -q "^starling: $T/folder/ck: cannot write: .*; training goes on$" || die "$(cat "$T/err")"
    tail -n 1 "$T/err" | grep -q "^starling: $T/folder/ck: the checkpoint of epoch [0-9]*000 was not written" || die "$(cat "$T/err")"
    "$STARLING" evaluate "$T/folder/ck" "$karate" --quiet || die "no checkpoint"
}

second_run() {
    begin "$STARLING"
    for file in checkpoint:ck log:log; do
        "$STARLING" train "$karate" --epochs 3 "--${file%:*}" "$T/${file#*:}" --quiet 2>"$T/words" </dev/null && die "two runs write it"
        sentence "${file#*:}: process $background on host " "$T/words"
    done
    kill -KILL "$background"
    wait "$background"
    "$STARLING" train "$karate" --epochs 3 --log "$T/log" --checkpoint "$T/ck" --quiet || die "the lock of a killed process"
    ls "$T"/.*.starling-lock 2>/dev/null && die "a lock is left"
    ls "$T"/*.tmp 2>/dev/null && die "a temporary file is left"
    return 0
}

# Cutting may take hours: a second run to the same file is refused before it begins.
second_partition() {
    "$STARLING" generate community "$T/wide" --vertices 200000 --classes 4 --degree 10 --features 2 --quiet || die "no graph"
    "$STARLING" partition "$T/wide" --method hdrf --parts 4 --out "$T/cut.npy" --quiet 2>"$T/err" </dev/null &
    background=$!
    until [ -s "$T/.cut.npy.starling-lock" ]; do
        kill -0 "$background" 2>/dev/null || die "no lock: $(cat "$T/err")"
    done
    kill -STOP "$background"
    exits 2 partition "$karate" --method random --parts 2 --out "$T/cut.npy" --quiet
    sentence "cut.npy: process $background on host " "$T/err"
    exits 0 partition "$karate" --method random --parts 2 --out "$T/other.npy" --quiet
    kill -CONT "$background"
    wait "$background" || die "exit status $? of the first run"
    grep -q '"vertices": 200000' "$T/cut.json" && [ "$(wc -c <"$T/cut.npy")" -gt 7000000 ] || die "the files of another run"
    [ ! -e "$T/.cut.npy.starling-lock" ] || die "a lock is left"
}

# What stands in the place of a lock: a link would have its target emptied, and nothing may run without the lock.
planted_locks() {
    mkdir "$T/cache"
    for how in -s ''; do
        echo precious >"$T/victim"
        for lock in cache/.starpu-start.lock .ck.starling-lock; do
            rm -rf "$T/cache/.starpu-start.lock" "$T/.ck.starling-lock"
            # shellcheck disable=SC2086
            ln $how "$T/victim" "$T/$lock"
            XDG_CACHE_HOME=$T/cache "$STARLING" train "$karate" --epochs 2 --quiet --checkpoint "$T/ck" 2>"$T/err" </dev/null
            status=$?
            [ "$(cat "$T/victim")" = precious ] || die "$lock: another file was emptied"
            case $lock in cache/*) [ $status -eq 0 ] && continue ;; esac
            [ $status -eq 2 ] || die "$lock: exit status $status: $(cat "$T/err")"
            sentence "ck: its lock $T/$lock is no file of its own" "$T/err"
        done
    done
    rm -f "$T/.ck.starling-lock"
    for what in "mkdir -p" mkfifo; do
        $what "$T/.ck.starling-lock"
        timeout 10 "$STARLING" train "$karate" --epochs 2 --quiet --checkpoint "$T/ck" 2>"$T/err" </dev/null
        status=$?
        [ $status -eq 2 ] || die "$what: exit status $status: $(cat "$T/err")"
        sentence "ck: its lock $T/.ck.starling-lock is no file of its own" "$T/err"
        rm -r "$T/.ck.starling-lock"
    done
}

# A stopped process that holds the lock of StarPU's start: ten seconds at most, of which quiet runs tell, too.
held_start() {
    command -v flock >/dev/null || { echo "no flock"; exit 77; }
    mkdir "$T/home"
    sh -c 'echo $$ >"$1"; exec flock "$1" sleep 60' sh "$T/home/.starpu-start.lock" &
    background=$!
    sleep 0.2
    (XDG_CACHE_HOME=$T/home && export XDG_CACHE_HOME && exec timeout -k 1 30 "$STARLING" train "$karate" --epochs 3 --workers 1 --quiet) \
        >"$T/out" 2>"$T/err" </dev/null || die "$(cat "$T/err")"
    sentence "process $background has been starting StarPU for 10 seconds" "$T/err"
}

# A file that becomes shorter while it is mapped. Its name turns no terminal red.
lost_pages() {
    graph=$T/graph$(printf '\033[31m')
    "$STARLING" generate community "$graph" --vertices 200000 --classes 4 --degree 4 --features 64 >"$T/out" || die "no graph"
    "$STARLING" train "$graph" --epochs 1 --batches co:4 --quiet 2>"$T/err" </dev/null &
    background=$!
    until grep -q features.npy "/proc/$background/maps" 2>/dev/null; do
        kill -0 "$background" || die "$(cat "$T/err")"
    done
    : >"$graph/features.npy"
    wait "$background"
    status=$?
    [ $status -eq 1 ] || die "exit status $status: $(cat "$T/err")"
    sentence 'graph\x1b[31m/features.npy: a page is gone' "$T/err"
}

pipes() {
    cp -r "$karate" "$T/pipes"
    for file in meta.json labels.npy indptr.npy; do
        mv "$T/pipes/$file" "$T/kept"
        mkfifo "$T/pipes/$file"
        timeout 10 "$STARLING" train "$T/pipes" --epochs 1 --quiet 2>"$T/err" </dev/null
        status=$?
        [ $status -eq 1 ] || die "$file: exit status $status: $(cat "$T/err")"
        sentence "$file: is no regular file" "$T/err"
        rm "$T/pipes/$file"
        mv "$T/kept" "$T/pipes/$file"
    done
}

# refuses_pipe FILE ARGUMENT ...: a pipe without an end on the other side is refused at once.
refuses_pipe() {
    rm -f "$1"
    mkfifo "$1"
    pipe=$1
    shift
    timeout 10 "$STARLING" "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
    [ $status -eq 1 ] || die "$*: exit status $status: $(cat "$T/err")"
    sentence "${pipe##*/}: ${wanted:-is no regular file}" "$T/err"
    [ -p "$pipe" ] || die "$*: the pipe is gone"
}

named_pipes() {
    mkdir "$T/tables" "$T/named"
    printf 'a,b\nb,c\n' >"$T/tables/edges.csv"
    "$STARLING" train "$karate" --epochs 2 --log "$T/good" --checkpoint "$T/ck" --quiet || die "no log"
    refuses_pipe "$T/tables/nodes.csv" info "$T/tables"
    rm "$T/tables/nodes.csv"
    wanted="is neither a file nor a directory"
    for file in edges.csv graph.txt graph.mtx graph.graph graph.mat graph.npz graph; do
        refuses_pipe "$T/named/$file" info "$T/named/$file"
    done
    wanted=
    refuses_pipe "$T/named/machine" plan "$karate" --ranks 2 --machine "$T/named/machine"
    refuses_pipe "$T/named/log" report "$T/named/log"
    refuses_pipe "$T/named/trace" report "$T/good" --trace "$T/named/trace"
    refuses_pipe "$T/named/ck" predict "$T/named/ck" "$karate"
    wanted="nobody reads this pipe"
    refuses_pipe "$T/named/log" train "$karate" --epochs 2 --log "$T/named/log"
    cat "$T/named/log" >"$T/copy" &
    background=$!
    "$STARLING" train "$karate" --epochs 2 --quiet --log "$T/named/log" || die "a pipe with a reader"
    wait "$background"
    grep -q '"event":"end"' "$T/copy" || die "no log in the pipe"
}

# The same bytes from the same dataset, whenever they are written.
same_archive() {
    "$STARLING" convert "$karate" "$T/one.npz" --quiet >"$T/out" || die "$(cat "$T/out")"
    sleep 2
    "$STARLING" convert "$karate" "$T/two.npz" --quiet >"$T/out" || die "$(cat "$T/out")"
    cmp "$T/one.npz" "$T/two.npz" || die "other bytes"
    for zone in Asia/Tokyo UTC-14 UTC+12; do # names of zones may not be there
        TZ=$zone "$STARLING" convert "$karate" "$T/${zone##*/}.npz" --quiet >"$T/out" || die "$(cat "$T/out")"
        cmp "$T/one.npz" "$T/${zone##*/}.npz" || die "other bytes in $zone"
    done
}

# A partition is two files: both are new, or both are the old ones.
half_partition() {
    exits 0 partition "$karate" --method libra --parts 2 --out "$T/half.npy" --quiet
    cp "$T/half.npy" "$T/before.npy" && rm "$T/half.json" && mkdir "$T/half.json" || exit 1
    exits 1 partition "$karate" --method libra --parts 3 --out "$T/half.npy" --quiet
    sentence "half.json: cannot write: Is a directory" "$T/err"
    cmp "$T/half.npy" "$T/before.npy" || die "half of another partition"
}

# The home of StarPU's files without a home: not somebody else's folder.
planted_home() {
    [ "$(id -u)" = 0 ] || { echo "not root: no folder of somebody else"; exit 77; }
    place=/tmp/starling-0
    [ ! -e "$place" ] || mv "$place" "$T/before" || exit 1 # what a run without a home left
    mkdir "$place" && chown 65534 "$place" || die "no folder"
    rm -rf "$place-1"
    (unset HOME STARPU_HOME XDG_CACHE_HOME && exec "$STARLING" train "$karate" --epochs 1 --workers 1 --quiet) 2>"$T/err" </dev/null
    status=$?
    found=$(ls -A "$place")
    rm -rf "$place"
    [ -d "$place-1/.starpu" ] || die "no folder of its own"
    rm -rf "$place-1"
    [ $status -eq 0 ] || die "$(cat "$T/err")"
    [ -z "$found" ] || die "files in somebody else's folder: $found"
}

for signal in HUP USR1 USR2 XCPU INT; do
    check "SIG$signal ends a run in order" orderly $signal
    check "SIG$signal before the first epoch" early $signal
done
check "SIGTERM before the first epoch" early TERM
check "SIGHUP twice" twice
check "an ignored SIGHUP" ignored HUP
check "a broken pipe" broken_pipe
check "a file larger than allowed" too_large
check "a lost checkpoint on the way" lost_checkpoint
check "a second run on the same files" second_run
check "a second partition to the same file" second_partition
check "links and folders in the place of locks" planted_locks
check "a held start of StarPU" held_start
check "a file that becomes shorter" lost_pages
check "pipes in a dataset" pipes
check "pipes that a user names" named_pipes
check "archives with the same bytes" same_archive
check "half of a partition" half_partition
check "a folder of somebody else" planted_home
finish
