#!/bin/sh
# cppcheck over all sources; skipped where there is none. Suppressed: what cppcheck cannot follow (values that are set
# whenever a code is 0, hexadecimal floating-point constants, casts of offsets,
# shifts of vectors, which GCC and Clang define).
[ -n "$CPPCHECK" ] || { echo "no cppcheck"; exit 77; }
cd "${top_srcdir:-.}" || exit 1
exec "$CPPCHECK" --quiet --error-exitcode=1 --std=c11 --language=c --enable=warning,portability \
    --inline-suppr --suppress=missingInclude --suppress=missingIncludeSystem --suppress=unknownMacro \
    --suppress=invalidPointerCast --suppress=invalidFunctionArg --suppress=incorrectLogicOperator \
    --suppress=shiftTooManyBitsSigned --suppress=uninitvar --suppress=uninitStructMember \
    -DSL_HAVE_MPI=1 -D'SL_VERSION="0"' -D__linux__ -Isrc -I. src codelets graphs
