#!/bin/sh
# What .ci/run makes of its parts, in a tree where `bootstrap` and `make` are of this test: the tier with CUDA runs
# wherever nvcc is, and is counted where it is not. There is no clang, which is one more test skipped.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
source=$(cd "${top_srcdir:-${srcdir:-.}}" && pwd)
command -v bash >/dev/null || { echo "no bash"; exit 77; }

# A program of $T/bin, which is all of PATH.
program() { # NAME, its words on stdin
    { echo '#!/bin/sh'; cat; } >"$T/bin/$1"
    chmod +x "$T/bin/$1"
}

tree() {
    mkdir -p "$T/bin" "$T/cuda/bin" "$T/none" "$T/tree/.ci" "$T/tree/tests"
    cp "$source/.ci/run" "$T/tree/.ci"
    cp "$source/tests/summary.awk" "$T/tree/tests"
    for tool in awk bash cat dirname env grep ls mkdir rm sed sh tee; do
        ln -s "$(command -v $tool)" "$T/bin/$tool" || exit 1
    done
    printf '#!/bin/sh\n' >"$T/cuda/bin/nvcc"
    chmod +x "$T/cuda/bin/nvcc"
    printf '#!/bin/sh\n[ "$1" != check ] || echo "5 passed, 0 failed, 1 skipped"\n' >"$T/tree/bootstrap"
    chmod +x "$T/tree/bootstrap"
}

# closes STATUS TEXT CUDA_HOME: .ci/run's exit status and last line.
closes() {
    rm -rf "$T/tree/build"
    env -i PATH="$T/bin" CUDA_HOME="$3" bash "$T/tree/.ci/run" >"$T/words" 2>&1
    got=$?
    [ $got -eq "$1" ] || die "exit status $got instead of $1: $(cat "$T/words")"
    [ "$(tail -n 1 "$T/words")" = "$2" ] || die "$(cat "$T/words")"
}

nowhere() {
    closes 0 "5 passed, 0 failed, 3 skipped" "$T/none"
    grep -q "^no nvcc .*$T/none/bin" "$T/words" || die "$(cat "$T/words")"
}

in_its_folder() {
    program make <<'END'
mkdir -p build/gpu/tests
echo ':global-test-result: PASS' >build/gpu/tests/gpu.trs
printf 'ok    one\nok    two\nskip  three: not there\n' >build/gpu/tests/gpu.log
END
    closes 0 "7 passed, 0 failed, 3 skipped" "$T/cuda"
}

not_built() {
    echo 'exit 1' | program make
    closes 1 "5 passed, 1 failed, 2 skipped" "$T/cuda"
}

check "a tree of its own" tree
check "no nvcc: said and counted" nowhere
check "nvcc in its folder, not on PATH" in_its_folder
check "a build with CUDA that fails" not_built
finish
