#!/bin/sh
# The kernels on arm64, on a machine of another kind: a cross compiler builds the library, the program and the kernels' tests,
# which run under qemu-user. The same training here and there has the same losses. Libraries for arm64 come from the apt
# sources of this system, into arm/sysroot of the build folder, which later runs keep. Prints a line "PASS: …" or "FAIL: …" for
# each step; where tools are missing, one line "SKIP: …" and exit status 77.
LC_ALL=C.UTF-8
export LC_ALL
unset MAKEFLAGS MFLAGS MAKELEVEL
here=$(cd "${top_srcdir:-.}" && pwd) || exit 1
native=$(cd "${top_builddir:-.}" && pwd) || exit 1
data=${SL_SHARED_DATA:-$here/../shared/data}
arm=$native/arm sysroot=$native/arm/sysroot build=$native/arm/build
libraries=$sysroot/usr/lib/aarch64-linux-gnu
blas=$libraries/openblas-pthread
packages=libc6-dev,libstarpu-dev,libhwloc-dev,libopenblas-pthread-dev,libmetis-dev,zlib1g-dev,libzip-dev,libjansson-dev,libcmocka-dev
epochs=10
tolerance=1e-4
failures=0

# step NAME FUNCTION [ARGUMENT ...]: one line of what came of it, and the last words of one that failed.
step() {
    name=$1
    shift
    if "$@" >"$arm/log" 2>&1; then
        echo "PASS: $name"
    else
        tail -n 30 "$arm/log"
        echo "FAIL: $name"
        failures=$((failures + 1))
        false
    fi
}

missing() { # prints ", PROGRAM (PACKAGE)" for each tool that is not there
    while read -r program package; do
        command -v "$program" >/dev/null || printf ', %s (%s)' "$program" "$package"
    done <<'END'
aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
qemu-aarch64 qemu-user
mmdebstrap mmdebstrap
END
}

# Packages are unpacked and not configured: the links that Debian's alternatives would make for OpenBLAS are made here. Links
# from / would lead out of the sysroot.
make_sysroot() {
    [ "$(cat "$arm/packages" 2>/dev/null)" != "$packages" ] || return 0
    set --
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        [ ! -s "$file" ] || set -- "$@" "$file"
    done
    [ $# -gt 0 ] || { echo "no apt sources in /etc/apt"; return 1; }
    rm -rf "$sysroot" "$build" "$arm/packages"
    mmdebstrap --variant=extract --architectures=arm64 --include="$packages" '' "$arm/sysroot.tar" "$@" || return 1
    mkdir "$sysroot" && tar -C "$sysroot" --no-same-owner --exclude=./dev -xf "$arm/sysroot.tar" || return 1
    rm "$arm/sysroot.tar"
    find "$sysroot" -type l -lname '/*' -name '*.so*' | while IFS= read -r link; do
        ln -srf "$sysroot$(readlink "$link")" "$link" || exit 1
    done || return 1
    ln -srf "$blas"/lib*.so.* "$libraries" || return 1
    echo "$packages" >"$arm/packages"
}

configure() {
    [ -z "$(find "$build/config.status" -newer "$here/tests/check-arm.sh" 2>/dev/null)" ] || return 0
    mkdir -p "$build" && cd "$build" && "$here/configure" --host=aarch64-linux-gnu CC="$cache aarch64-linux-gnu-gcc --sysroot=$sysroot" \
        CXX="$cache aarch64-linux-gnu-g++ --sysroot=$sysroot" CFLAGS=-O2 CXXFLAGS=-O2 --enable-werror --disable-static \
        --without-mpi --without-onednn --without-ptscotch --without-toml --without-python --without-cuda
}

# The kernels' tests, and those of tasks on two workers. SL_UNITS=K/N: those whose place in the list modulo N is K.
tests() {
    (cd "$here/tests" && ls test_kernels_*.c test_tasks_norm.c test_tasks_rows.c) | sed 's,\(.*\)\.c$,tests/\1,' |
        awk -v part="${SL_UNITS:-0/1}" 'BEGIN { split(part, of, "/") } NR % of[2] == of[1]'
}

compile() {
    # shellcheck disable=SC2046
    make -C "$build" -j "$(nproc)" libstarling.la starling $(tests)
}

# Automake's own lines. The sysroot's libraries come first, files of this system second.
run_tests() {
    rm -f "$build"/tests/*.trs
    SL_TEST_TERMS=2500000 make -C "$build" -j "$(nproc)" check-TESTS TESTS="$(tests | tr '\n' ' ')" check_PROGRAMS= \
        LOG_COMPILER="timeout 900 qemu-aarch64 -L $sysroot" VERBOSE=1 >"$arm/log" 2>&1
    status=$?
    # Automake says twice what failed.
    lines=$(sed -n 's,^PASS: tests/,PASS: ,p; s,^[A-OQ-Z][A-Z]*: tests/,FAIL: ,p' "$arm/log" | awk '!said[$0]++')
    [ -z "$lines" ] || echo "$lines"
    [ $status -ne 0 ] || [ "$(echo "$lines" | grep -c '^PASS: ')" -ne "$(tests | wc -l)" ] || return 0
    grep -hE '^\[  (ERROR|FAILED) |^\[   LINE   |Error ' "$arm/log" | head -n 40
    echo "$lines" | grep -q '^FAIL: ' || echo "FAIL: the kernels' tests"
    failures=$((failures + 1))
}

# The losses of a log, a line each.
losses() { # LOG
    sed -n 's/^{"event":"epoch",.*"loss":\([^,}]*\).*/\1/p' "$1"
}

same_losses() { # MODEL DATASET
    options="--model $1 --epochs $epochs --quiet"
    rm -f "$arm/here.log" "$arm/there.log"
    # shellcheck disable=SC2086
    "$native/starling" train "$2" $options --log "$arm/here.log" || return 1
    # shellcheck disable=SC2086
    STARPU_HOME=$arm/home XDG_CACHE_HOME=$arm/home timeout 900 qemu-aarch64 -L "$sysroot" "$build/starling" train "$2" \
        $options --log "$arm/there.log" || return 1
    losses "$arm/here.log" >"$arm/here" && losses "$arm/there.log" >"$arm/there" || return 1
    paste "$arm/here" "$arm/there" | awk -v epochs="$epochs" -v tolerance="$tolerance" '
        function size(x) { return x < 0 ? -x : x }
        function number(x) { return x ~ /^[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$/ }
        !number($1) || !number($2) || !(size($1 - $2) <= tolerance * $1) { print "epoch " NR ": " $0; bad = 1 }
        END { if (NR != epochs) { print NR " epochs"; bad = 1 }; exit bad }'
}

lacking=$(missing)
[ -z "$lacking" ] || {
    echo "SKIP: arm64: there is no ${lacking#, }"
    exit 77
}
mkdir -p "$arm/home"
case $CC in *ccache*) cache=ccache ;; *) cache= ;; esac
PKG_CONFIG_SYSROOT_DIR=$sysroot PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$blas/pkgconfig:$sysroot/usr/share/pkgconfig
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
step "a sysroot" make_sysroot && step "configure" configure && step "compilation" compile || exit 1
run_tests
for model in gcn sage gat; do
    step "losses of karate, $model" same_losses $model "$here/examples/karate"
done
if [ -d "$data/cora" ]; then
    step "losses of Cora" same_losses gcn "$data/cora"
fi
[ $failures -eq 0 ]
