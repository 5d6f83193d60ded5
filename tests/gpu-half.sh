#!/bin/sh
# The cases of tests/gpu.sh that SL_CASES=0/2 leaves out, for a second core: .ci/run.
SL_CASES=1/2
export SL_CASES
. "${top_srcdir:-${srcdir:-.}}/tests/gpu.sh"
