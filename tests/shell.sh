# shellcheck shell=sh
# What the shell tests of the program share, for them to source. Wants $STARLING, the program, and $top_srcdir (or
# $srcdir), the source tree with examples/karate. Makes $STARLING absolute, and $karate; $T is a directory for files.
LC_ALL=C
export LC_ALL
STARLING=${STARLING:-./starling}
case $STARLING in /*) ;; *) STARLING=$PWD/$STARLING ;; esac
karate=${top_srcdir:-${srcdir:-.}}/examples/karate
case $karate in /*) ;; *) karate=$PWD/$karate ;; esac
T=$(mktemp -d "${TMPDIR:-/tmp}/starling-$(basename "$0" .sh)-XXXXXX") || exit 1
# MPI launchers at the same time make and remove one directory in /tmp, and fail now and then.
OMPI_MCA_orte_tmpdir_base=$T PRTE_MCA_prte_tmpdir_base=$T
export OMPI_MCA_orte_tmpdir_base PRTE_MCA_prte_tmpdir_base
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM
failures=0 cases=0 skipped=0
alike='' # functions of cases that differ in options alone, or are long

# check NAME FUNCTION [ARGUMENT ...]: run a case and print one line, ok, FAIL or skip, which tests/summary.awk counts. A
# part that a case leaves out is a line of its own: what the case said in lines that begin with "skip  ".
#
# SL_CASES=K/N runs the cases whose place modulo N is K, for N parts of a test side by side. Of cases whose
# functions $alike lists, SL_SAMPLE=K/N (.ci/run) runs those whose place among them modulo N is K.
place=0 turn=0 left=0
part=${SL_CASES:-0/1} sample=${SL_SAMPLE:-0/1}
for share in "$part" "$sample"; do
    [ "${share%/*}" -lt "${share#*/}" ] 2>/dev/null || {
        echo "SL_CASES or SL_SAMPLE is $share: expected K/N, K < N"
        exit 2
    }
done
check() {
    name=$1
    shift
    place=$((place + 1))
    [ $((place % ${part#*/})) -eq "${part%/*}" ] || return 0
    case " $alike " in
    *" $1 "*)
        turn=$((turn + 1))
        [ $((turn % ${sample#*/})) -eq "${sample%/*}" ] || {
            left=$((left + 1))
            return 0
        }
        ;;
    esac
    cases=$((cases + 1))
    (
        background= # a program that a case which fails may leave there
        trap 'kill -9 $background 2>/dev/null' EXIT
        "$@"
    ) >"$T/said" 2>&1
    case $? in
    0)
        echo "ok    $name"
        grep '^skip  ' "$T/said" | while read -r _ reason; do echo "skip  $name: $reason"; done
        ;;
    77)
        echo "skip  $name: $(tail -n 1 "$T/said")"
        skipped=$((skipped + 1))
        ;;
    *)
        echo "FAIL  $name"
        sed 's/^/          /' "$T/said"
        failures=$((failures + 1))
        ;;
    esac
}

# some ITEM ...: the items of a case are in $all. Of six and more ($long: of more than it says), take every third ($one_of: one
# of so many), and in the next case others, unless SL_EVERY is all (make check-every). With SL_SAMPLE, take half as many, one at
# least; SL_TURN, a number, says which.
some() {
    all=$*
    [ "$SL_EVERY" != all ] && [ $# -gt "${long:-5}" ] || return 0
    all='' turn=$((place + ${SL_TURN:-0})) of=${one_of:-3}
    [ "$sample" = 0/1 ] || of=$((2 * of))
    for item; do
        [ $((turn % of)) -ne 0 ] || all="$all $item"
        turn=$((turn + 1))
    done
    [ -n "$all" ] || eval "all=\${$((turn % $# + 1))}"
}

# End a case that cannot run here: it counts as skipped.
skip() { # REASON
    echo "$*"
    exit 77
}

# Ends a case that failed.
die() {
    echo "$*"
    exit 1
}

# exits STATUS ARGUMENT ...: the program must exit so; its words are then in $T/out and $T/err. The limit is for one that
# hangs: a bench of a hundred trainings takes minutes where many programs share the cores.
exits() {
    wanted=$1
    shift
    timeout 1200 "$STARLING" "$@" >"$T/out" 2>"$T/err" </dev/null
    got=$?
    [ $got -eq "$wanted" ] || die "exit status $got instead of $wanted: starling $*: $(cat "$T/err")"
}

# sentence TEXT FILE: the program said one thing in FILE, which holds TEXT.
sentence() {
    [ "$(grep -c '^starling: ' "$2")" -eq 1 ] || die "not one sentence: $(cat "$2")"
    grep '^starling: ' "$2" | grep -qF -e "$1" || die "no \"$1\" in: $(cat "$2")"
}

# on_terminal STREAM ARGUMENT ...: the program with a terminal as stdout or stderr, whose words are then in $T/screen. Words of
# the other stream are in $T/beside.
on_terminal() {
    command -v python3 >/dev/null 2>&1 || { echo "no python3 to make a terminal"; exit 77; }
    python3 - "$T/screen" "$T/beside" "$1" "$STARLING" "$@" <<'PYTHON' || die "no terminal"
import os, pty, subprocess, sys
screen, other, stream, program, _, *arguments = sys.argv[1:]
terminal, end = pty.openpty()
with open(screen, "wb") as said, open(other, "wb") as rest:
    run = subprocess.Popen([program] + arguments, **{"stdout": rest, "stderr": rest, stream: end})
    os.close(end)
    part = b" "
    while part:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            part = b""
        said.write(part)
sys.exit(run.wait())
PYTHON
}

# catches PROCESS: whether the process is the program, and not the shell or launcher that starts it, and catches SIGUSR2.
catches() {
    grep -qa "^$STARLING" "/proc/$1/cmdline" 2>/dev/null && grep -q '^SigCgt:.*[89a-f]..$' "/proc/$1/status" 2>/dev/null
}

# The numbers of a .npy file of float32, a line each.
numbers() { # FILE
    od -An -v -t f4 -w4 -j128 "$1"
}

# close_to FILE FILE: as many numbers in both, a line each, and as good as equal. Small ones count as 0.1: after 30 epochs
# they have the errors of the large ones.
close_to() {
    [ -s "$1" ] || die "$1 is empty"
    [ "$(wc -l <"$1")" -eq "$(wc -l <"$2")" ] || die "other sizes: $1 and $2"
    paste "$1" "$2" | awk -v tolerance=1e-4 '
        function size(x) { return x < 0 ? -x : x }
        size($1 - $2) > tolerance * (size($1) > 0.1 ? size($1) : 0.1) { print "line " NR ": " $0; bad = 1 }
        END { exit bad }' || die "unlike numbers: $1 and $2"
}

# npy FILE TYPE SHAPE, then the bytes as an octal format of printf.
npy() {
    header="{'descr': '$2', 'fortran_order': False, 'shape': $3, }"
    {
        printf '\223NUMPY\001\000\166\000%-117s\n' "$header"
        printf "$4"
    } >"$1"
}

# The last line of a test, which is skipped if all of its cases are.
finish() {
    [ $left -eq 0 ] || echo "skip  $left cases that are not in the sample $sample"
    echo "$cases cases, $failures failed, $skipped skipped"
    [ "$skipped" -lt "$cases" ] || exit 77
    [ $failures -eq 0 ]
}
