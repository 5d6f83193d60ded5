#!/bin/sh
# What .ci/run makes of its parts, in a tree where `bootstrap` and `make` are of this test: the tier with CUDA runs
# wherever nvcc is, and is counted where it is not; so is the build for arm64. There is no clang, which is one more test
# skipped.
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
    cp "$source/tests/summary.awk" "$source/tests/slowest.awk" "$T/tree/tests"
    for tool in awk bash cat dirname env grep ls mkdir rm sed sh tail tee; do
        ln -s "$(command -v $tool)" "$T/bin/$tool" || exit 1
    done
    printf '#!/bin/sh\n' >"$T/cuda/bin/nvcc"
    chmod +x "$T/cuda/bin/nvcc"
    printf '#!/bin/sh\n[ "$1" != check ] || echo "5 passed, 0 failed, 1 skipped"\n' >"$T/tree/bootstrap"
    chmod +x "$T/tree/bootstrap"
    program make <<END
case " \$* " in
*" check-arm "*) . "$T/arm" ;;
*) . "$T/gpu" ;;
esac
END
    no_arm
    echo 'exit 1' >"$T/gpu"
}

# What check-arm does where its tools are missing.
no_arm() {
    echo 'echo "SKIP: arm64: there is no tool"; exit 2' >"$T/arm"
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
    closes 0 "5 passed, 0 failed, 4 skipped" "$T/none"
    grep -q "^no nvcc .*$T/none/bin" "$T/words" || die "$(cat "$T/words")"
    grep -q "SL_SAMPLE=0/1 SL_TURN=0, .* SL_UNITS=0/1, at base;" "$T/words" || die "not all cases: $(cat "$T/words")"
    grep -q "^no Python packages for tests: " "$T/words" || die "no word of Python: $(cat "$T/words")"
    echo 'echo 1234567890acabcdef000001' | program git
    closes 0 "5 passed, 0 failed, 4 skipped" "$T/none"
    grep -qw avx2 /proc/cpuinfo && level=v3 || level=base
    grep -q "SL_SAMPLE=$((0x123456 % 5))/5 SL_TURN=$((0xabcdef % 120)), .* SL_UNITS=1/3, at $level;" "$T/words" || die "another sample: $(cat "$T/words")"
    rm "$T/bin/git"
}

in_its_folder() {
    cat >"$T/gpu" <<'END'
mkdir -p build/gpu/tests
echo ':global-test-result: PASS' >build/gpu/tests/gpu.trs
printf 'ok    one\nok    two\nskip  three: not there\n' >build/gpu/tests/gpu.log
END
    closes 0 "7 passed, 0 failed, 4 skipped" "$T/cuda"
}

# Eleven tests, one a file with other numbers than the rest: ten are named, the slowest first.
slowest() {
    no_arm
    cat >"$T/tree/bootstrap" <<'END'
mkdir -p build/tests
for t in 1 2 3 4 5 6 7 8 9 10 11; do
    printf '0m0.5s 0m0.5s\n0m%d.5s 1m0.25s\n' $t >build/tests/test_$t.seconds
done
echo "5 passed, 0 failed, 1 skipped"
END
    closes 0 "5 passed, 0 failed, 4 skipped" "$T/none"
    sed -n 's/ *\([0-9.]*\) s of processor time  /\1 /p' "$T/words" >"$T/named"
    [ "$(wc -l <"$T/named")" -eq 11 ] && [ "$(head -n 1 "$T/named")" = "71.8 test_11" ] &&
        [ "$(sed -n 10p "$T/named")" = "62.8 test_2" ] && [ "$(tail -n 1 "$T/named")" = "734.2 all tests" ] || die "$(cat "$T/words")"
    grep -q ' at base; [0-9][0-9]* s of ./bootstrap check, [0-9]* s of the other' "$T/words" || die "$(cat "$T/words")"
}

# A test that fails does so under tests/timed.sh, too.
timed() {
    mkdir -p "$T/timed/tests"
    for status in 0 1 77; do
        echo "exit $status" >"$T/timed/one.sh"
        top_builddir=$T/timed sh "$source/tests/timed.sh" sh "$T/timed/one.sh"
        [ $? -eq $status ] || die "not $status"
        [ "$(wc -l <"$T/timed/tests/one.seconds")" -eq 2 ] || die "no seconds"
        rm "$T/timed/tests/one.seconds"
    done
}

not_built() {
    echo 'exit 1' >"$T/gpu"
    closes 1 "5 passed, 1 failed, 3 skipped" "$T/cuda"
}

arm_passes() {
    echo 'echo "PASS: one"; echo "PASS: two"' >"$T/arm"
    closes 0 "7 passed, 0 failed, 3 skipped" "$T/none"
}

# It is said twice: in its place, and near the end.
arm_fails() {
    echo 'echo "PASS: one"; echo "FAIL: two"; echo "make: Error 1"; exit 2' >"$T/arm"
    closes 1 "6 passed, 1 failed, 3 skipped" "$T/none"
    [ "$(grep -c '^FAIL: arm64: two$' "$T/words")" -eq 2 ] || die "$(cat "$T/words")"
}

# A make that fails, and one that does nothing.
arm_without_a_line() {
    for status in 2 0; do
        echo "exit $status" >"$T/arm"
        closes 1 "5 passed, 1 failed, 3 skipped" "$T/none"
        grep -q "^FAIL: arm64: .* $status\$" "$T/words" || die "$(cat "$T/words")"
    done
}

# Root asks apt for the tools, others do not; without them, the rest goes on.
arm_tools() {
    no_arm
    echo "echo \"\$*\" >>\"$T/asked\"; exit 100" | program apt-get
    for user in 1000 0; do
        echo "echo $user" | program id
        [ ! -e "$T/asked" ] || die "user 1000: $(cat "$T/asked")"
        closes 0 "5 passed, 0 failed, 4 skipped" "$T/none"
    done
    for package in gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user mmdebstrap; do
        grep -q "^install .* $package\( \|\$\)" "$T/asked" || die "no $package: $(cat "$T/asked")"
    done
}

check "a tree of its own" tree
check "no nvcc: said and counted" nowhere
check "nvcc in its folder, not on PATH" in_its_folder
check "a build with CUDA that fails" not_built
check "a build for arm64 that passes" arm_passes
check "a build for arm64 that fails" arm_fails
check "a build for arm64 without a line" arm_without_a_line
check "the tools of a build for arm64" arm_tools
check "the slowest tests" slowest
check "the exit status of a timed test" timed
finish
