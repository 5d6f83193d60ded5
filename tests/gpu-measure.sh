#!/bin/sh
# contrib/gpu-measure.sh where nothing can be built: which options configure gets, that no failed step stops the others,
# that one JSON document comes out, and that steps and time can be limited.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
script=$(cd "${top_srcdir:-${srcdir:-.}}" && pwd)/contrib/gpu-measure.sh

# A tree with a configure that keeps its words and fails.
tree() {
    mkdir -p "$T/tree/contrib" "$T/some where/starpu"
    cp "$script" "$T/tree/contrib"
    printf '#!/bin/sh\nprintf "%%s\\n" "$@" >"%s/words"\nexit 1\n' "$T" >"$T/tree/configure"
    chmod +x "$T/tree/configure"
}

measures() (
    cd "$T/some where" && SL_SHARED_DATA=/nowhere sh "$T/tree/contrib/gpu-measure.sh" out --with-starpu=starpu --enable-werror \
        NVCCFLAGS=-O3 >"$T/out" 2>&1 </dev/null
)

words() {
    tree
    ! measures || die "a build that fails is no failed step"
    printf '%s\n' --with-cuda "--with-starpu=$T/some where/starpu" --enable-werror NVCCFLAGS=-O3 >"$T/wanted"
    diff "$T/wanted" "$T/words" || die "other words for configure"
}

document() {
    command -v python3 >/dev/null 2>&1 || skip "no python3 to read the JSON"
    python3 -c '
import json, sys
document = json.load(open(sys.argv[1]))
names = [s["step"] for s in document["steps"]]
assert document["failed"] == len([s for s in document["steps"] if s["status"] not in (0, 77)]) > 5, document
assert names[0] == "build" and names[-1] == "peers-products", names
assert {"kernels", "spmm-reddit", "epoch-products", "tasks-5", "memory-same", "sanitizer-memcheck"} < set(names), names
' "$T/some where/out/gpu.json" || die "$(cat "$T/some where/out/gpu.json")"
}

# --pack of a configure whose programs are those of this test, of which one wants the library libgone.so. Datasets are
# carried, and CUDA kernels are for an H200.
packing() {
    for tool in cc ldd make strip; do
        command -v $tool >/dev/null 2>&1 || skip "no $tool"
    done
    tree
    mkdir -p "$T/real/cora" "$T/gone"
    echo '{}' >"$T/real/cora/meta.json"
    echo 'int gone(void) { return 0; }' | cc -shared -fPIC -o "$T/gone/libgone.so" -x c - || exit 1
    echo 'int gone(void); int main(void) { return gone(); }' |
        cc -x c - -o "$T/program" -L"$T/gone" -lgone -Wl,-rpath,"$T/gone" || exit 1
    cat >"$T/tree/configure" <<END
#!/bin/sh
printf '%s\n' "\$@" >"$T/words"
mkdir -p tests
printf 'all:\n%%:\n\tcp "$T/program" \$@\n' >Makefile
END
    SL_SHARED_DATA=$T/real sh "$T/tree/contrib/gpu-measure.sh" --pack >"$T/out" 2>&1 || die "$(cat "$T/out")"
    grep -q '^--pack: citeseer is not in ' "$T/out" || die "$(cat "$T/out")"
    grep -qx 'NVCCFLAGS=-O3 -arch=sm_90' "$T/words" || die "$(cat "$T/words")"
    tar -tzf "$T/tree/build/packed.tar.gz" >"$T/list"
    for file in starling tests/test_tasks lib/libgone.so data/cora/meta.json; do
        grep -qx "./$file" "$T/list" || die "no $file in: $(cat "$T/list")"
    done
    rm "$T/gone/libgone.so"
    ! SL_SHARED_DATA=$T/real sh "$T/tree/contrib/gpu-measure.sh" --pack >"$T/out" 2>&1 || die "a missing library is packed"
    grep -q '^--pack: libraries are missing here: libgone.so ' "$T/out" || die "$(cat "$T/out")"
    [ ! -e "$T/tree/build/packed.tar.gz" ] || die "packed all the same"
}

# steps SECONDS "STEP ..." TEXT: the steps that packed programs take, and their statuses.
steps() {
    SL_SHARED_DATA=/nowhere SL_GPU_SECONDS=$1 SL_GPU_STEPS=$2 sh "$T/tree/contrib/gpu-measure.sh" "$T/limited" >"$T/out" 2>&1
    python3 -c '
import json, sys
document = json.load(open(sys.argv[1]))
print(*["%s:%d" % (s["step"], s["status"]) for s in document["steps"]])
assert document["failed"] == len([s for s in document["steps"] if s["status"] not in (0, 77)])
' "$T/limited/gpu.json" >"$T/got" || die "$(cat "$T/limited/gpu.json")"
    [ "$(cat "$T/got")" = "$3" ] || die "$(cat "$T/got" "$T/limited/gpu.log")"
}

# A program, and a dataset, out of what --pack made.
packed() { # the program on stdin
    rm -rf "$T/packed"
    mkdir -p "$T/tree/build" "$T/packed/data/cora"
    cat >"$T/packed/starling"
    chmod +x "$T/packed/starling"
    tar -C "$T/packed" -czf "$T/tree/build/packed.tar.gz" .
}

# Losses of a program that writes logs, on the GPU $1 of those on the cores.
training() { # FACTOR STATUS
    command -v python3 >/dev/null 2>&1 || skip "no python3 to read the JSON"
    packed <<END
#!/bin/sh
loss=0.5
while [ \$# -gt 0 ]; do
    case "\$1 \$2" in
    --log*) log=\$2 ;;
    "--device cuda") loss=\$(awk 'BEGIN { print 0.5 * $1 }') ;;
    esac
    shift
done
[ -z "\$log" ] || for epoch in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    echo "{\"event\":\"epoch\",\"epoch\":\$epoch,\"loss\":\$loss}"
done >"\$log"
END
    steps 60 "train memory" "libraries:0 machine:0 graph-memory:0 train-cora-cpu:0 train-cora-cuda:0 train-cora-close:$2 \
train-cora:0 train-citeseer:77 memory-256:0 memory-4096:0 memory-same:0"
}

# A program that never ends.
limited() {
    command -v python3 >/dev/null 2>&1 || skip "no python3 to read the JSON"
    printf '#!/bin/sh\nsleep 100\n' | packed
    steps 12 "gemm train" "libraries:0 machine:124 train-cora-cpu:77 train-cora-cuda:77 train-cora-close:77 train-cora:77 \
train-citeseer:77 gemm:77"
}

check 'directories of options become absolute' words
check 'a document with all steps' document
check 'what is packed' packing
check 'losses that round differently' training 1.00005 0
check 'losses that are others' training 1.01 1
check 'steps and seconds' limited
finish
