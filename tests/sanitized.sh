#!/bin/sh
# Builds the program and its library in FOLDER by Clang, at -O1, with AddressSanitizer, UndefinedBehaviorSanitizer and the
# counters of libFuzzer, whatever the build around it is. A line and exit status 77 where Clang lacks them.
# Usage: sanitized.sh FOLDER
here=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL # those of a make around this script
probe=$(mktemp) || exit 1
trap 'rm -f "$probe"' EXIT
echo 'int LLVMFuzzerTestOneInput(const char *data, long size); int LLVMFuzzerTestOneInput(const char *data, long size) { return !data && size; }' |
    clang -x c - -fsanitize=fuzzer,address,undefined -o "$probe" 2>/dev/null || {
    echo "no clang with sanitizers and libFuzzer"
    exit 77
}
CC=clang CXX=clang++ CFLAGS='-O1 -g1 -fsanitize=fuzzer-no-link' CXXFLAGS='-O1 -g1'
export CC CXX CFLAGS CXXFLAGS
exec "$here/bootstrap" --build-dir "$1" --enable-sanitizers --enable-werror </dev/null
