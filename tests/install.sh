#!/bin/sh
# make install, into a folder of this test: what is there, and that it works; make uninstall leaves nothing.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
source=$(cd "${karate%/examples/karate}" && pwd)
build=$(cd "$(dirname "$STARLING")" && pwd)
[ -e "$build/Makefile" ] || { echo "no build folder"; exit 77; }
prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
root=$T/root
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR

# The folder of Python packages under the root, or nothing.
packages() {
    find "$root" -path '*/starling/__init__.py' | sed 's,/starling/__init__.py,,'
}

install() {
    make -C "$build" install DESTDIR="$root" >"$T/words" 2>&1 </dev/null || die "$(tail -n 20 "$T/words")"
    for file in bin/starling include/starling.h include/starling-predict.h share/man/man1/starling.1 share/man/man1/starling-train.1 \
        share/bash-completion/completions/starling share/zsh/site-functions/_starling \
        share/starling/examples/karate/meta.json share/starling/examples/machines/summit.json \
        share/doc/starling/examples/train.c share/doc/starling/README.md share/doc/starling/docs/FIRST_HOUR.md; do
        [ -s "$root$prefix/$file" ] || die "no $file"
    done
    grep -q '^PYTHON = .' "$build/Makefile" || return 0
    for module in "$source"/python/starling/*.py; do
        cmp "$module" "$(packages)/starling/$(basename "$module")" || die "no Python package"
    done
}

# Links of the installed pages to one another, to pictures and examples.
pages() {
    cd "$root$prefix/share/doc/starling" || die "no pages"
    for page in README.md HACKING.md SECURITY.md docs/*.md docs/measurements/*.md; do
        grep -o ']([^)#]*' "$page" | sed 's/^](//; /^$/d; /^[a-z]*:/d' | while read -r link; do
            [ -e "$(dirname "$page")/$link" ] || echo "$page: $link"
            echo "$link" >>"$T/links"
        done
    done >"$T/broken"
    [ ! -s "$T/broken" ] || die "$(cat "$T/broken")"
    grep -qx '\.\./examples/own_loss.c' "$T/links" || die "no link to an example"
}

runs() {
    timeout 120 "$root$prefix/bin/starling" train "$root$prefix/share/starling/examples/karate" --epochs 5 >"$T/out" 2>&1 ||
        die "$(cat "$T/out")"
    grep -q 'test accuracy' "$T/out" || die "$(cat "$T/out")"
    # The program finds machine files beside itself, under whatever prefix.
    (cd / && timeout 120 "$root$prefix/bin/starling" plan --machine dgx-a100 --like reddit --ranks 2 >"$T/out" 2>&1) || die "$(cat "$T/out")"
}

library() {
    command -v cc >/dev/null || skip "no cc"
    command -v pkg-config >/dev/null || skip "no pkg-config"
    pc=$(find "$root" -name starling.pc)
    lib=$(dirname "$(dirname "$pc")")
    flags=$(PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs starling) || die "pkg-config"
    # shellcheck disable=SC2086
    cc "$root$prefix/share/doc/starling/examples/train.c" $flags -o "$T/train" || die "it does not link: $flags"
    LD_LIBRARY_PATH=$lib timeout 120 "$T/train" "$karate" >"$T/out" || die "it does not run"
    grep -q '^test accuracy' "$T/out" || die "$(cat "$T/out")"
}

with_cmake() {
    command -v cmake >/dev/null || skip "no cmake"
    config=$(find "$root" -name starling-config.cmake)
    [ -s "$config" ] || die "no starling-config.cmake"
    mkdir "$T/project"
    cp "$root$prefix/share/doc/starling/examples/train.c" "$T/project"
    cat >"$T/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(try C)
find_package(starling 0.1 REQUIRED CONFIG)
add_executable(try train.c)
target_link_libraries(try starling::starling)
END
    { cmake -S "$T/project" -B "$T/project/build" -Dstarling_DIR="$(dirname "$config")" && cmake --build "$T/project/build"; } \
        >"$T/words" 2>&1 || die "$(cat "$T/words")"
    LD_LIBRARY_PATH=$(dirname "$(find "$root" -name libstarling.so)") timeout 120 "$T/project/build/try" "$karate" >"$T/out" ||
        die "it does not run"
    grep -q '^test accuracy' "$T/out" || die "$(cat "$T/out")"
    sed -i 's/starling 0.1/starling 0.2/' "$T/project/CMakeLists.txt"
    ! cmake -S "$T/project" -B "$T/project/build" >"$T/words" 2>&1 || die "version 0.2 is found"
}

# Predictions without StarPU and MPI, by pkg-config and by CMake.
predictions() {
    command -v cc >/dev/null || skip "no cc"
    command -v pkg-config >/dev/null || skip "no pkg-config"
    pc=$(find "$root" -name starling-predict.pc)
    lib=$(dirname "$(dirname "$pc")")
    data=$T/community
    timeout 120 "$STARLING" generate community "$data" --vertices 200 --classes 3 --degree 5 --features 8 --seed 1 --quiet >"$T/out" 2>&1 &&
        timeout 120 "$STARLING" train "$data" --epochs 3 --checkpoint "$T/model" --quiet >>"$T/out" 2>&1 || die "$(cat "$T/out")"
    flags=$(PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs starling-predict) || die "pkg-config"
    # shellcheck disable=SC2086
    cc "$root$prefix/share/doc/starling/examples/predict.c" $flags -o "$T/predict" || die "it does not link: $flags"
    LD_LIBRARY_PATH=$lib "$T/predict" "$T/model" "$data" >"$T/pkg-config" || die "it does not run"
    grep -q '^gcn: 8 features, 3 classes$' "$T/pkg-config" || die "$(cat "$T/pkg-config")"
    command -v cmake >/dev/null || return 0
    mkdir "$T/predictions"
    cp "$root$prefix/share/doc/starling/examples/predict.c" "$T/predictions"
    cat >"$T/predictions/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(try C)
find_package(starling-predict 0.1 REQUIRED CONFIG)
add_executable(try predict.c)
target_link_libraries(try starling::predict)
END
    { cmake -S "$T/predictions" -B "$T/predictions/build" -Dstarling-predict_DIR="$lib/cmake/starling-predict" &&
        cmake --build "$T/predictions/build"; } >"$T/words" 2>&1 || die "$(cat "$T/words")"
    LD_LIBRARY_PATH=$lib "$T/predictions/build/try" "$T/model" "$data" >"$T/cmake" || die "it does not run"
    cmp "$T/pkg-config" "$T/cmake" || die "other classes"
}

python() {
    folder=$(packages)
    [ -n "$folder" ] || skip "configured without Python"
    python=${SL_PYTHON:-${SL_PEER_PYTHON:-python3}}
    "$python" -c 'import numpy' 2>/dev/null || skip "no NumPy in $python"
    library=$(find "$root" -name 'libstarling.so.0')
    cd "$T" || exit 1
    LD_LIBRARY_PATH=$(dirname "$library") PYTHONPATH=$folder PYTHONDONTWRITEBYTECODE=1 timeout 120 "$python" -c '
import sys, starling
assert starling.__file__.startswith(sys.argv[2]), starling.__file__
model = starling.train(starling.Graph.open(sys.argv[1]), epochs=5)
print(starling.version(), model.result.loss)' "$karate" "$root" >"$T/out" 2>&1 || die "$(cat "$T/out")"
}

uninstall() {
    make -C "$build" uninstall DESTDIR="$root" >"$T/words" 2>&1 </dev/null || die "$(tail -n 20 "$T/words")"
    find "$root" ! -type d >"$T/left"
    [ ! -s "$T/left" ] || die "left: $(cat "$T/left")"
}

check "make install" install
check "links of the installed pages" pages
check "the installed program" runs
check "a program with the installed library" library
check "a program with CMake" with_cmake
check "predictions with the installed library" predictions
check "the installed Python package" python
check "make uninstall" uninstall
finish
