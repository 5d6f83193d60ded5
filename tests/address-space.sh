#!/bin/sh
# A limit of the address space (ulimit -v): a run ends, well or with one sentence. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
(ulimit -v 4000000 && timeout 20 "$STARLING" version) >/dev/null 2>&1 || { echo "no ulimit -v here"; exit 77; }

# limited KB ARGUMENT ...: prints the exit status.
limited() {
    kb=$1
    shift
    (ulimit -v "$kb" && exec timeout -k 1 30 "$STARLING" "$@") >"$T/out" 2>"$T/err" </dev/null
    echo $?
}

# OpenBLAS starts a thread for each core when it is loaded; where it cannot, it says so and ends the process itself. Where there
# is no room for a library, the loader says so.
ends() { # KB
    status=$(limited "$1" train "$karate" --epochs 3 --workers 2)
    echo "$1 kB: status $status, $(head -n 1 "$T/err")"
    case $status in
    0) [ ! -s "$T/err" ] || die "$(cat "$T/err")" ;;
    1) sentence "ulimit -v" "$T/err" ;;
    127) grep -q 'error while loading shared libraries' "$T/err" || die "$(cat "$T/err")" ;;
    *) grep -q '^OpenBLAS blas_thread_init' "$T/err" || die "$(cat "$T/err")" ;;
    esac
}

# OpenBLAS's threads, too, want buffers.
version() {
    [ "$(limited 150000 version)" = 0 ] || grep -q '^OpenBLAS blas_thread_init' "$T/err" || die "$(cat "$T/err")"
}

bench_kernels() {
    [ "$(limited 200000 bench gemm --repetitions 1)" = 1 ] || die "$(cat "$T/err")"
    sentence "" "$T/err"
}

works() {
    [ "$(limited 1200000 train "$karate" --epochs 3 --workers 1)" = 0 ] || die "$(cat "$T/err")"
}

# Stacks of threads take address space, too.
large_stacks() {
    (ulimit -s 131072 && ulimit -v 500000 && exec timeout -k 1 30 "$STARLING" train "$karate" --epochs 3 --workers 2) \
        >"$T/out" 2>"$T/err" </dev/null
    [ $? = 1 ] || die "$(cat "$T/err")"
    sentence "leaves no room for StarPU" "$T/err"
}

# Kernels keep large arrays elsewhere: workers have the stack that ulimit -s says.
small_stack() {
    "$STARLING" generate community "$T/small" --vertices 2000 --classes 4 --degree 6 --features 200 >"$T/out" || die "no graph"
    for options in "--precision fp32" "--precision bf16" "--model gat" "--model sage --aggregator max" "--model resgcn --layers 3" "--submodels 2 --epochs 4"; do
        # shellcheck disable=SC2086
        (ulimit -s 256 && exec timeout -k 1 60 "$STARLING" train "$T/small" --epochs 2 --workers 1 --tiles 2 --hidden 96 --quiet $options) \
            >"$T/out" 2>"$T/err" </dev/null || die "$options: status $?, $(cat "$T/err")"
    done
}

# A plan is compared with what the limit leaves.
plan() {
    "$STARLING" generate community "$T/graph" --vertices 60000 --classes 4 --degree 4 --features 64 >"$T/out" || die "no graph"
    [ "$(limited 700000 train "$T/graph" --hidden 1024 --layers 3 --epochs 1 --workers 1)" = 1 ] || die "$(cat "$T/err")"
    sentence "ulimit -v or -d leaves" "$T/err"
}

# The most memory of a training so long, of which the log keeps the last line, in kB.
taken_in() { # EPOCHS
    "$STARLING" train "$karate" --epochs "$1" --eval-every 1000 --workers 1 --quiet --log "$T/log" >"$T/out" 2>&1 ||
        die "$(cat "$T/out")"
    tail -n 1 "$T/log" | sed -n 's/.*"peak_memory_bytes":\([0-9]*\)[0-9][0-9][0-9],.*/\1/p'
}

# 36,000 epochs more, of 8 bytes each for the median of their times.
long_run() {
    short=$(taken_in 4000) long=$(taken_in 40000)
    echo "4000 epochs: $short kB, 40000: $long kB"
    [ "$short" -gt 1000 ] && [ $((long - short)) -lt 2500 ] || die "a long run takes more"
}

# What StarPU measured lies in HOME: a place without room for files is left, and empty files are those of a full disk.
no_room() {
    printf x >"$T/file"
    for home in "$T/file" "$T/file/below"; do
        (unset STARPU_HOME XDG_CACHE_HOME && HOME=$home && export HOME && exec "$STARLING" train "$karate" --epochs 2 --workers 1 --quiet) \
            >"$T/out" 2>"$T/err" </dev/null || die "$home: $(cat "$T/err")"
        (XDG_CACHE_HOME=$home && export XDG_CACHE_HOME && exec "$STARLING" train "$karate" --epochs 2 --workers 1) \
            >"$T/out" 2>"$T/err" </dev/null || die "$home: $(cat "$T/err")"
        grep -q "$home: .*StarPU keeps its measurements of this machine in /tmp" "$T/err" || die "$home: $(cat "$T/err")"
    done
    mkdir "$T/home"
    for turn in first second; do
        (unset XDG_CACHE_HOME && STARPU_HOME=$T/home && export STARPU_HOME && exec "$STARLING" train "$karate" --epochs 2 --workers 1 --quiet) \
            >"$T/out" 2>"$T/err" </dev/null || die "$turn: $(cat "$T/err")"
        files=$(find "$T/home/.starpu/sampling/bus" -type f)
        [ -n "$files" ] || die "no files in the place that STARPU_HOME names"
        for file in $files; do
            [ -s "$file" ] || die "$turn: $file is empty"
            : >"$file"
        done
    done
}

for kb in 80000 150000 220000 300000 350000 400000 430000 460000 500000; do
    check "$kb kB" ends $kb
done
check "1,200,000 kB are enough for a worker" works
if (ulimit -s 131072) 2>/dev/null; then
    check "stacks of 128 MiB, in 500,000 kB" large_stacks
fi
check "stacks of 256 KiB" small_stack
check "a home without room, and empty files there" no_room
check "version, in 150,000 kB" version
check "bench gemm" bench_kernels
check "a plan that does not fit" plan
check "a long run takes no more memory than a short one" long_run
finish
