#!/bin/sh
# libstarling-predict: logits of every model beside starling_predict's (tests/predict_models), what the library is linked with, its
# size and names, and a program of C++. One line per case. tests/test_predict.c has damaged files and wrong graphs.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
build=$(cd "$(dirname "$STARLING")" && pwd)
source=$(cd "${karate%/examples/karate}" && pwd)
python=${SL_PYTHON:-${SL_PEER_PYTHON:-python3}}
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
    ldd "$library" >"$T/needed" 2>&1 || die "$(cat "$T/needed")"
    grep -q libjansson "$T/needed" || die "no libraries: $(cat "$T/needed")"
    awk '{ print $1 }' "$T/needed" | grep -vE '^(linux-vdso\.|/lib|lib(jansson|z|m|c|pthread)\.so)' >"$T/out" && die "$(cat "$T/out")"
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

# The example reads weights, and refuses what it does not read.
example() {
    data=$T/data
    cp -r "$karate" "$data"
    chmod -R u+w "$data"
    "$python" -c 'import numpy' 2>/dev/null || skip "no NumPy in $python"
    "$python" -c 'import numpy, sys
indptr, to = (numpy.load(f"{sys.argv[1]}/{name}.npy") for name in ("indptr", "indices"))
of = numpy.repeat(numpy.arange(len(indptr) - 1), numpy.diff(indptr))
numpy.save(sys.argv[1] + "/weights.npy", (0.01 + (of + to) % 5 * 3).astype(numpy.float32))' "$data"
    exits 0 train "$data" --epochs 20 --hidden 4 --checkpoint "$T/model" --quiet
    exits 0 predict "$T/model" "$data" --output "$T/classes.npy" --quiet
    "$python" -c 'import numpy, sys
for v, c in enumerate(numpy.load(sys.argv[1])[:5]):
    print(f"vertex {v}: class {c}")' "$T/classes.npy" >"$T/wanted"
    "$build/examples/predict" "$T/model" "$data" >"$T/out" || die "it fails"
    grep '^vertex' "$T/out" | cut -d ' ' -f 1-4 >"$T/found"
    cmp "$T/wanted" "$T/found" || die "$(diff "$T/wanted" "$T/found")"
    for name in edge_types.npy edge_features.npy relations; do
        mkdir "$data/$name"
        ! "$build/examples/predict" "$T/model" "$data" >"$T/out" 2>"$T/err" || die "$name is not refused"
        grep -q "^predict: $data/$name: this program does not read it$" "$T/err" || die "$(cat "$T/err")"
        rmdir "$data/$name"
    done
}

check "logits of every model" models
check "the example" example
check "libraries and size" alone
check "names" names
check "a program of C++" cpp
finish
