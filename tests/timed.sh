#!/bin/sh
# Runs a test, and leaves the processor time of the test and its children in tests/NAME.seconds of the build folder: .ci/run
# names the slowest tests. Usage: timed.sh COMMAND ... TEST
"$@"
status=$?
for test; do :; done
test=${test##*/}
# user and system time: of this shell, then of its children
times >"${top_builddir:-.}/tests/${test%.sh}.seconds"
exit $status
