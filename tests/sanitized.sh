#!/bin/sh
# Builds the program and its library in FOLDER by Clang, at -O1, with sanitizers, whatever the build around it is:
#   address   AddressSanitizer, UndefinedBehaviorSanitizer and the counters of libFuzzer
#   thread    ThreadSanitizer
# A line and exit status 77 where Clang lacks them. With SL_SANITIZED_LEVEL=base, v3 or v4 in the environment, kernels are compiled
# for this level of instructions alone.
# Usage: sanitized.sh KIND FOLDER
here=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL # those of a make around this script
case $1 in
address) flags=-fsanitize=fuzzer-no-link probe=-fsanitize=fuzzer,address,undefined options=--enable-sanitizers ;;
thread) flags=-fsanitize=thread probe='-fsanitize=thread -DALONE' options= ;;
*) exit 2 ;;
esac
program=$(mktemp) || exit 1
trap 'rm -f "$program"' EXIT
# shellcheck disable=SC2086
clang -x c - $probe -o "$program" 2>/dev/null <<'END' || { echo "no clang with $1 sanitizer and libFuzzer"; exit 77; }
#ifdef ALONE
int main(void) { return 0; }
#else
int LLVMFuzzerTestOneInput(const char *data, long size);
int LLVMFuzzerTestOneInput(const char *data, long size) { return !data && size; }
#endif
END
CC=clang CXX=clang++ CFLAGS="-O1 -g1 $flags" CXXFLAGS="-O1 -g1"
# bootstrap does not see that these have changed.
if [ "$(cat "$2/level" 2>/dev/null)" != "$SL_SANITIZED_LEVEL" ]; then
    rm -rf "$2"
    mkdir -p "$2" && echo "$SL_SANITIZED_LEVEL" >"$2/level" || exit 1
fi
case $SL_SANITIZED_LEVEL in
'') ;;
base) export sl_cv_x86_levels=no ;;
*) export sl_cv_x86_levels=no && CFLAGS="$CFLAGS -march=x86-64-$SL_SANITIZED_LEVEL" ;;
esac
[ "$1" != thread ] || CXXFLAGS=$CFLAGS
export CC CXX CFLAGS CXXFLAGS
# shellcheck disable=SC2086
"$here/bootstrap" --build-dir "$2" --enable-werror $options </dev/null
