#!/bin/sh
# Which StarPU ./bootstrap takes, in a tree where configure, make, apt and the tools that bootstrap looks for are of this test.
# The installed StarPU is a header with a limit of 1 CPU worker, unless a case says otherwise; the machine has 2 cores.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
source=$(cd "${top_srcdir:-${srcdir:-.}}" && pwd)
own=$T/own
tree=$T/tree

# A program of $T/bin, which is all of PATH.
program() { # NAME, its words on stdin
    { echo '#!/bin/sh'; cat; } >"$T/bin/$1"
    chmod +x "$T/bin/$1"
}

# Programs of this machine.
tool() { # NAME ...
    for name; do
        ln -s "$(command -v "$name")" "$T/bin/$name" || exit 1
    done
}

# ./configure says how it is called; `apt-get source` makes another one, of StarPU.
made() {
    mkdir -p "$T/bin" "$T/include" "$tree/contrib" "$tree/build-aux"
    cp "$source/bootstrap" "$tree"
    : >"$tree/Makefile.in"
    : >"$tree/build-aux/ltmain.sh"
    printf '#!/bin/sh\necho "starling $*" >>"%s"\n: >config.status\n' "$T/configured" >"$tree/configure"
    chmod +x "$tree/configure"
    tool awk basename cat chmod cut date dirname env grep mkdir readlink rm sed sh sort tail touch tr
    for name in autoconf automake c++ dot doxygen dpkg-source file gnuplot libtoolize mpirun pandoc patch; do
        program $name </dev/null
    done
    echo 'echo 0' | program id
    echo 'echo 2' | program getconf
    echo "[ -z \"\$OMP_NUM_THREADS\" ] && cat '$T/cores' || echo 1" | program nproc
    program pkg-config <<END
case \$* in
"--exists starpu-1.4"*) exit 1 ;;
"--cflags starpu-1.3") echo "-I$T/include" ;;
esac
END
    # All headers are there; that of StarPU is read.
    program cc <<END
words=\$(cat)
case \$words in *STARPU_MAXCPUS*) printf '%s\n' "\$words" | "$(command -v cc)" "\$@" ;; esac
END
    echo 'echo "        500 http://deb.debian.org/debian bookworm/main amd64 Packages"' | program apt-cache
    program apt-get <<END
case \$* in
*" update") [ ! -e "$T/offline" ] ;;
*" source starpu")
    mkdir -p starpu-1.3.10
    printf '#!/bin/sh\necho "starpu \$*" >>"%s"\n' "$T/configured" >starpu-1.3.10/configure
    chmod +x starpu-1.3.10/configure
    ;;
esac
END
    # The folder that StarPU is installed in.
    program make <<END
case \$* in
*" -q "*) exit 1 ;;
*own-starpu/build\ install) mkdir -p "$own" ;;
esac
END
}

# boots LIMIT CORES [OPTION ...]: what was configured, on $T/configured.
boots() {
    printf '#define STARPU_MAXCPUS %s\n' "$1" >"$T/include/starpu_config.h"
    echo "$2" >"$T/cores"
    shift 2
    : >"$T/configured"
    env -i HOME="$T" PATH="$T/bin" OMP_NUM_THREADS=1 sh "$tree/bootstrap" --prefix "$own" "$@" >"$T/words" 2>&1 ||
        die "bootstrap $* fails: $(cat "$T/words" "$tree/build/bootstrap.log")"
}

fresh() {
    rm -rf "$tree/build" "$own" "$T/offline"
}

says() {
    grep -qF -e "$1" "$T/words" || die "no \"$1\" in: $(cat "$T/words")"
}

# built CPUS: a StarPU of the test's own, for so many, and Starling with it.
built() {
    grep -q "^starpu --prefix=$own .*--enable-maxcpus=$1 " "$T/configured" || die "no StarPU is built: $(cat "$T/configured" "$T/words")"
    grep -q "^starling .*--with-starpu=$own\$" "$T/configured" || die "Starling without it: $(cat "$T/configured")"
}

kept() {
    ! grep -q '^starpu' "$T/configured" || die "StarPU is built: $(cat "$T/configured")"
    ! grep -q 'with-starpu' "$T/configured" || die "$(cat "$T/configured")"
}

more_cores() {
    fresh
    boots 1 2
    built 64
    says "the installed StarPU has at most 1 CPU workers for 2 cores"
    grep -qE '^bootstrap: building StarPU for 64 cores.*: [0-9]+ s$' "$T/words" || die "no seconds: $(cat "$T/words")"
    grep -qE '^bootstrap: building in build/: [0-9]+ s$' "$T/words" || die "no seconds: $(cat "$T/words")"
}

# The next run configures nothing anew.
again() {
    boots 1 2
    [ ! -s "$T/configured" ] || die "$(cat "$T/configured")"
}

enough() { # LIMIT CORES
    fresh
    boots "$1" "$2"
    kept
    grep -q '^starling' "$T/configured" || die "nothing is configured"
}

declined() {
    fresh
    boots 1 2 --distribution-starpu
    kept
    boots 1 2
    kept
}

given() {
    fresh
    boots 1 2 --with-starpu=/elsewhere
    ! grep -q '^starpu' "$T/configured" || die "StarPU is built"
    grep -q '^starling .*--with-starpu=/elsewhere$' "$T/configured" || die "$(cat "$T/configured")"
}

asked() {
    fresh
    boots 64 2 --own-starpu
    built 64
}

# Without a network, the installed StarPU must do; a run with a network makes up for it.
offline() {
    fresh
    touch "$T/offline"
    boots 1 2
    kept
    says "no StarPU for all cores: Starling will use 1 of 2"
    rm "$T/offline"
    boots 1 2
    built 64
}

# A wheel has a build of its own, whatever is configured: it takes no option, and loses none.
wheel_alone() {
    fresh
    for option in --with-cuda --own-starpu --distribution-starpu --with-starpu=/elsewhere --build-dir=other --prefix=/elsewhere; do
        ! env -i HOME="$T" PATH="$T/bin" sh "$tree/bootstrap" "$option" wheel >"$T/words" 2>&1 || die "exit status 0: $option"
        says "wheel: expected no other option"
    done
}

command -v cc >/dev/null || { echo "no cc"; exit 77; }
check "a tree of its own" made
check "more cores than workers: a StarPU for all" more_cores
check "once" again
check "as many workers as cores" enough 2 2
check "four workers, two cores" enough 4 2
check "--distribution-starpu, now and later" declined
check "--with-starpu" given
check "--own-starpu" asked
check "no network" offline
check "a wheel, with other options" wheel_alone
finish
