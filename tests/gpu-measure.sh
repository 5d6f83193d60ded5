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
assert names[0] == "build" and names[-1] == "sanitizer", names
assert {"kernels", "spmm-reddit", "epoch-products", "tasks", "memory-same"} < set(names), names
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

# A program that never ends, out of what --pack made.
limited() {
    command -v python3 >/dev/null 2>&1 || skip "no python3 to read the JSON"
    mkdir -p "$T/tree/build" "$T/packed"
    printf '#!/bin/sh\nsleep 100\n' >"$T/packed/starling"
    chmod +x "$T/packed/starling"
    tar -C "$T/packed" -czf "$T/tree/build/packed.tar.gz" .
    ! SL_SHARED_DATA=/nowhere SL_GPU_SECONDS=12 SL_GPU_STEPS="gemm train" sh "$T/tree/contrib/gpu-measure.sh" "$T/limited" >/dev/null 2>&1 ||
        die "a step that was ended is no failed step"
    python3 -c '
import json, sys
document = json.load(open(sys.argv[1]))
assert [(s["step"], s["status"]) for s in document["steps"]] == [
    ("libraries", 0), ("machine", 124), ("train-cora", 77), ("train-citeseer", 77), ("gemm", 77)], document
assert document["failed"] == 1, document
' "$T/limited/gpu.json" || die "$(cat "$T/limited/gpu.json")"
}

check 'directories of options become absolute' words
check 'a document with all steps' document
check 'what is packed' packing
check 'steps and seconds' limited
finish
