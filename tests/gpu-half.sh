#!/bin/sh
# The cases of tests/gpu.sh that SL_CASES=0/2 leaves out, for a second core: .ci/run. StarPU's models of two tests at a time are
# in two folders.
SL_CASES=1/2 STARPU_HOME=${STARPU_HOME:-.}-half
export SL_CASES STARPU_HOME
mkdir -p "$STARPU_HOME" || exit 1
. "${top_srcdir:-${srcdir:-.}}/tests/gpu.sh"
