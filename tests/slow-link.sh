#!/bin/sh
# Two ranks on a slow network: two network namespaces, joined by a pair of virtual devices with a token bucket (tc tbf)
# at both ends. With and without overlap, losses are the same to the bit; how long an epoch takes is printed, and fails
# nothing. `tests/slow-link.sh --measure [OPTION of train ...]` (in the build directory) takes a larger graph and prints
# the table of docs/measurements/DISTRIBUTIONS.md. Each `--against 'OPTION ...'` before the other options measures an epoch with its
# options in place of, or beside, the others on the same link, too. SL_LINK_VERTICES,
# SL_LINK_DEGREE and SL_LINK_EPOCHS take the place of its own numbers, SL_LINK_DATASET that of its graph, and
# SL_LINK_KBIT (in a second) that of the rate at which messages take as long as computing; SL_LINK_TIMES multiplies the
# rate; a run may take SL_LINK_SECONDS. With SL_LINK_REMEMBER=1, all runs know the machine and the link, which `starling
# bench machine --remember` measures before, and `starling plan` says what it predicts. Skipped where namespaces are not
# permitted.
measure= options= against=
if [ "$1" = --measure ]; then
    measure=1
    shift
    while [ "$1" = --against ]; do
        against="$against$2
"
        shift 2
    done
    options=$*
fi
skip() {
    echo "$*"
    exit 77
}
[ -n "$MPIRUN" ] || MPIRUN=$(command -v mpirun)
for tool in ip tc unshare taskset "${MPIRUN:-mpirun}"; do
    command -v "$tool" >/dev/null || skip "no $tool"
done
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' || skip "not Open MPI"
T=
here=sl-$$-here there=sl-$$-there
ip netns add $here 2>/dev/null || skip "network namespaces are not permitted here"
# Whatever is left in the two is ended: mpirun's daemon on the other side outlives a killed mpirun.
leave() {
    for namespace in $here $there; do
        for process in $(ip netns pids $namespace 2>/dev/null); do
            kill -9 "$process" 2>/dev/null
        done
        ip netns delete $namespace 2>/dev/null
    done
    [ -z "$T" ] || rm -rf "$T"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
trap leave EXIT # in the place of that of shell.sh
ip netns add $there && ip link add pair0 netns $here type veth peer name pair0 netns $there ||
    skip "pairs of virtual network devices are not permitted here"
address() { # NAMESPACE ADDRESS
    ip -n "$1" address add "$2/24" dev pair0 && ip -n "$1" link set lo up && ip -n "$1" link set pair0 up
}
address $here 10.77.0.1 && address $there 10.77.0.2 || exit 1

# shape KBIT: at most so many in a second, in each direction.
shape() {
    for namespace in $here $there; do
        ip netns exec $namespace tc qdisc replace dev pair0 root tbf rate "$1kbit" burst 128kb limit 512kb || return 1
    done
}
shape 400000 2>/dev/null || skip "tc tbf is not permitted here"

# What mpirun starts its daemon on the other side with. The two have names of their own, or ranks would meet in memory.
cat >"$T/agent" <<END
#!/bin/sh
shift
exec ip netns exec $there unshare --uts sh -c 'hostname $there && eval "\$0"' "\$*"
END
chmod +x "$T/agent"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM

XDG_CACHE_HOME=$T/cache
export XDG_CACHE_HOME

# both COMMAND ...: a rank on either side, each on a core of its own if there are two.
both() {
    last=$(($(getconf _NPROCESSORS_ONLN) > 1))
    timeout ${SL_LINK_SECONDS:-100} ip netns exec $here unshare --uts sh -c 'hostname "$0" && exec "$@"' $here \
        "$MPIRUN" --bind-to none --mca plm_rsh_agent "$T/agent" --mca oob_tcp_if_include 10.77.0.0/24 \
        --gmca pml ob1 --gmca btl tcp,self --gmca btl_tcp_if_include 10.77.0.0/24 \
        -n 1 --host 10.77.0.1 taskset -c 0 "$@" : -n 1 --host 10.77.0.2 taskset -c $last "$@" \
        >"$T/out" 2>&1 </dev/null || die "exit status $?: $(cat "$T/out")"
}

# train NAME OPTION ...: one worker on either side; the log is NAME.
train() {
    log=$T/$1
    shift
    # shellcheck disable=SC2086
    both "$STARLING" train "$graph" --epochs $epochs --layers 3 --hidden $hidden --dropout 0 --workers 1 \
        --eval-every $epochs --log "$log" --quiet $options "$@"
}

# figure NAME FIELD: of the log's last line.
figure() {
    tail -n 1 "$T/$1" | sed -n 's/.*"'"$2"'":\[*\([^],}]*\).*/\1/p'
}

losses() {
    sed -n 's/.*\("epoch":[0-9]*\).*\("loss":[^",}][^",}]*\).*/\1 \2/p' "$T/$1"
}

make_graph() {
    [ "$graph" = "$T/graph" ] || return 0
    "$STARLING" generate community "$T/graph" --vertices $vertices --degree $degree --classes 16 --features 32 --seed 2
}

# A link on which an epoch's messages take as long as its computing does without waiting for any.
balance() {
    shape 40000000 && train fast --profile --no-overlap || exit 1
    bytes=$(tail -n 1 "$T/fast" | sed -n 's/.*"traffic_per_epoch":{"bytes_sent":\[\([0-9]*\).*/\1/p')
    tail -n 1 "$T/fast" | sed -n 's/.*"profile":{\(.*\)/\1/p' | tr ',' '\n' | sed 's/"//g' |
        awk -F: -v bytes="$bytes" -v file="$T/balance" '
            !($1 in f) { f[$1] = $2 }
            END { seconds = (f["busy_seconds"] + f["overhead_seconds"]) / f["epochs"]
                  if (!(seconds > 0 && bytes > 0)) exit 1
                  printf "%.6f %.0f %d\n", seconds, bytes, 8e-3 * bytes / seconds > file }' || die "no profile"
    read -r _ _ rate <"$T/balance"
    echo "0 $bytes $(awk -v rate="${SL_LINK_KBIT:-$rate}" -v times="${SL_LINK_TIMES:-1}" \
        'BEGIN { printf "%d", rate * times }')" >"$T/balance"
}

# alone COMMAND ...: one process, with the name of the first rank's machine.
alone() {
    ip netns exec $here unshare --uts sh -c 'hostname "$0" && exec "$@"' $here taskset -c 0 "$@"
}

# With the link known there are other tiles, and other losses than on a fast link.
same_losses() {
    read -r _ _ rate <"$T/balance" && shape "$rate" || exit 1
    if [ "$SL_LINK_REMEMBER" = 1 ]; then
        alone "$STARLING" bench machine --remember --repetitions 2 --width 16,64,256 >/dev/null || exit 1
        both "$STARLING" bench machine --remember --repetitions 1
        tail -n 1 "$T/out" >"$T/link"
    fi
    train with && train without --no-overlap || exit 1
    losses with >"$T/one"
    [ "$(wc -l <"$T/one")" -eq $epochs ] || die "not $epochs losses"
    losses without | diff "$T/one" - || die "other losses without overlap"
    [ "$SL_LINK_REMEMBER" = 1 ] || losses fast | diff "$T/one" - || die "other losses on a fast link"
}

own_first() {
    train own --sum-order own-first && train still --sum-order own-first --no-overlap || exit 1
    losses own >"$T/one"
    [ "$(wc -l <"$T/one")" -eq $epochs ] || die "not $epochs losses"
    losses still | diff "$T/one" - || die "other losses without overlap"
}

# Of the time in which messages travelled, what was hidden, in percent over both ranks.
hidden() { # NAME
    tail -n 1 "$T/$1" | sed 's/.*"communication_seconds":.\([^]]*\).,"hidden_seconds":.\([^]]*\).*/\1,\2/' |
        awk -F, '{ print ($1 + $2 > 0 ? 100 * ($3 + $4) / ($1 + $2) : 0) }'
}

# Seconds of both ranks in an epoch, their mean.
mean() { # NAME FIELD
    tail -n 1 "$T/$1" | sed 's/.*"'"$2"'":.\([^]]*\).*/\1/' | awk -F, '{ print ($1 + $2) / 2 }'
}

# What an epoch computes and how long its messages are under way is measured on this link, without overlap: messages have
# headers and are acknowledged, which takes part of the rate.
table() {
    read -r _ bytes rate <"$T/balance"
    awk -v compute="$(mean without compute_seconds)" -v travel="$(mean without communication_seconds)" \
        -v bytes="$bytes" -v rate="$rate" -v with="$(figure with epoch_seconds_median)" \
        -v without="$(figure without epoch_seconds_median)" -v hidden="$(hidden with)" -v bare="$(hidden without)" 'BEGIN {
            most = compute > travel ? compute : travel
            printf "%-32s %8.1f Mbit/s\n", "link", rate / 1000
            printf "%-32s %8.1f ms\n", "computing", 1000 * compute
            printf "%-32s %8.1f ms, %.1f ms by the rate for %.1f MB\n", "messages", 1000 * travel, 8 * bytes / rate, bytes / 1e6
            format = "%-32s %8.1f ms, %.2f of the longer, %.2f of the sum, %.0f %% of messages\047 time hidden\n"
            printf format, "an epoch without overlap", 1000 * without, without / most, without / (compute + travel), bare
            printf format, "an epoch with overlap", 1000 * with, with / most, with / (compute + travel), hidden }'
}

# compare OPTION ...: options that come later win.
compare() {
    train other "$@" && train still "$@" --no-overlap || exit 1
    printf "%-32s %8d tiles, scheduler %s\n" "$* has" "$(sed -n '1s/.*"tiles":\([1-9][0-9]*\),.*/\1/p' "$T/other")" \
        "$(sed -n '1s/.*"scheduler":"\([^"]*\)".*/\1/p' "$T/other")"
    sed -n '1s/.*"preload_reason":"\([^"]*\)".*/    \1/p' "$T/other"
    awk -v one="$(figure with epoch_seconds_median)" -v other="$(figure other epoch_seconds_median)" -v what="$*" \
        -v before="$(mean without communication_seconds)" -v after="$(mean still communication_seconds)" \
        -v compute="$(mean still compute_seconds)" '
        BEGIN { most = after > compute ? after : compute
                printf "%-32s %8.1f ms, %.2f of the longer, %.2f of an epoch without %s\n", "an epoch with " what,
                       1000 * other, (most > 0 ? other / most : 0), other / one, what
                printf "%-32s %8.1f ms, %.2f of those without %s\n", "its messages, without overlap", 1000 * after,
                       (before > 0 ? after / before : 0), what }'
}

compare_all() {
    if [ "$SL_LINK_REMEMBER" = 1 ]; then
        cat "$T/link"
        # shellcheck disable=SC2086
        alone "$STARLING" plan "$graph" --ranks 2 --groups 2x1 --layers 3 --hidden $hidden --dropout 0 --workers 1 \
            $(printf '%s' "$options" | sed 's/--distribution [^ ]*//')
    fi
    while read -r words; do
        # shellcheck disable=SC2086
        [ -z "$words" ] || compare $words
    done <<END
$against
END
}

if [ -n "$measure" ]; then
    vertices=${SL_LINK_VERTICES:-60000} degree=${SL_LINK_DEGREE:-1200} hidden=128 epochs=${SL_LINK_EPOCHS:-9}
else
    vertices=4000 degree=400 hidden=64 epochs=6
fi
graph=${SL_LINK_DATASET:-$T/graph}
check "a graph" make_graph
check "a link as slow as the computing" balance
check "with and without overlap: the same losses, bit for bit" same_losses
[ -n "$measure" ] || check "own tiles first, with and without overlap: the same losses, bit for bit" own_first
[ $failures -gt 0 ] || table
[ $failures -gt 0 ] || [ -z "$against" ] || compare_all
finish
