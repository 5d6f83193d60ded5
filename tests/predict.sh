#!/bin/sh
# libstarling-predict: logits of every model beside starling_predict's (tests/predict_models), what the library is linked with, its
# size and names, and a program of C++. One line per case. tests/test_predict.c has damaged files and wrong graphs.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
build=$(cd "$(dirname "$STARLING")" && pwd)
source=$(cd "${karate%/examples/karate}" && pwd)
library=$build/.libs/libstarling-predict.so

models() {
    mkdir "$T/models"
    timeout 300 "$build/tests/predict_models" "$T/models" >"$T/out" 2>"$T/err" || die "$(grep FAIL "$T/out"; cat "$T/err")"
    [ "$(wc -l <"$T/out")" -eq 42 ] || die "other models: $(cat "$T/out")"
}

# StarPU, MPI, BLAS and hwloc are not there, nor any library that is not named here; 2 MB at most.
alone() {
    [ -e "$library" ] || skip "no shared library"
    [ -z "$SL_SANITIZED" ] || skip "the sanitizers' libraries"
    ldd "$library" | awk '{ print $1 }' | grep -vE '^(linux-vdso\.|/lib|lib(jansson|z|m|c|pthread)\.so)' >"$T/out" && die "$(cat "$T/out")"
    command -v strip >/dev/null || skip "no strip"
    strip -o "$T/stripped" "$library" || die "strip"
    size=$(wc -c <"$T/stripped")
    [ "$size" -lt 2000000 ] || die "$size bytes"
}

# The names of the header, and no others.
names() {
    [ -e "$library" ] || skip "no shared library"
    command -v nm >/dev/null || skip "no nm"
    nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$T/exported"
    grep -v '^#' "$source/include/starling-predict.h" | tr '\n' ' ' | grep -o 'STARLING_PREDICT_API [^;{]*(' |
        grep -oE 'starling_[a-z_]*\(' | tr -d '(' | sort >"$T/declared"
    [ -s "$T/declared" ] && cmp "$T/declared" "$T/exported" || die "$(diff "$T/declared" "$T/exported")"
}

cpp() {
    command -v c++ >/dev/null || skip "no c++"
    printf '%s\n' '#include <starling-predict.h>' '#include <cstring>' \
        'int main() { return std::strcmp(starling_predictor_version(), "0.1.0"); }' >"$T/try.cc"
    [ -e "$library" ] && [ -z "$SL_SANITIZED" ] || skip "no shared library"
    c++ -Wall -Wextra -Werror -pedantic -I"$source/include" "$T/try.cc" -L"$build/.libs" -lstarling-predict -o "$T/try" || die "it does not link"
    LD_LIBRARY_PATH=$build/.libs "$T/try" || die "another version"
}

check "logits of every model" models
check "libraries and size" alone
check "names" names
check "a program of C++" cpp
finish
