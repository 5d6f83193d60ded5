#!/bin/sh
# What the runtime asks of MPI and of Linux at its start, and that the user has the last word (tests/test_messages.c).
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
program=${top_builddir:-.}/tests/test_messages
[ -x "$program" ] || { echo 'built without MPI'; exit 77; }
case $program in /*) ;; *) program=$PWD/$program ;; esac
variables='btl_tcp_flags btl_tcp_max_send_size btl_tcp_sndbuf mpi_yield_when_idle'

# says LINE ENVIRONMENT ...: among what two ranks say; of TCP, Open MPI knows nothing where it leaves that out.
says() {
    line=$1
    shift
    # shellcheck disable=SC2086
    env OMPI_MCA_btl=self,tcp "$@" timeout 60 "$MPIRUN" -n 2 "$program" $variables >"$T/out" 2>&1 || die "$(cat "$T/out")"
    grep -qx "$line" "$T/out" || die "no \"$line\" in: $(cat "$T/out")"
}

suggested() {
    says 'btl_tcp_flags 1' && says 'btl_tcp_max_send_size 65536' && says 'btl_tcp_sndbuf 262144' &&
        says 'mpi_yield_when_idle 1'
}

chosen() {
    says 'btl_tcp_flags 3' OMPI_MCA_btl_tcp_flags=3 && says 'btl_tcp_sndbuf 131072' OMPI_MCA_btl_tcp_sndbuf=131072 &&
        says 'mpi_yield_when_idle 0' OMPI_MCA_mpi_yield_when_idle=0
}

# The thread that serves messages, and no other.
short() {
    says 'slices \(1 of [0-9]*\|refused\)'
}

alone() {
    [ "$("$program")" = 'mpi no' ] || die 'MPI has started'
}

if "$MPIRUN" --version 2>/dev/null | grep -q 'Open MPI'; then
    check 'Open MPI sends in small pieces and yields' suggested
    check 'what the user sets wins' chosen
fi
check 'the thread for messages has short time slices' short
check 'without a launcher there is no MPI' alone
finish
