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
    command -v python3 >/dev/null 2>&1 || return 0
    python3 -c '
import json, sys
document = json.load(open(sys.argv[1]))
names = [s["step"] for s in document["steps"]]
assert document["failed"] == len([s for s in document["steps"] if s["status"] not in (0, 77)]) > 5, document
assert names[0] == "build" and names[-1] == "sanitizer", names
assert {"kernels", "spmm-reddit", "epoch-products", "tasks", "memory-same"} < set(names), names
' "$T/some where/out/gpu.json" || die "$(cat "$T/some where/out/gpu.json")"
}

# A program that never ends, out of what --pack made.
limited() {
    command -v python3 >/dev/null 2>&1 || return 0
    mkdir -p "$T/tree/build" "$T/packed"
    printf '#!/bin/sh\nsleep 100\n' >"$T/packed/starling"
    chmod +x "$T/packed/starling"
    tar -C "$T/packed" -czf "$T/tree/build/packed.tar.gz" .
    ! SL_SHARED_DATA=/nowhere SL_GPU_SECONDS=12 SL_GPU_STEPS="gemm train" sh "$T/tree/contrib/gpu-measure.sh" "$T/limited" >/dev/null 2>&1 ||
        die "a step that was ended is no failed step"
    python3 -c '
import json, sys
document = json.load(open(sys.argv[1]))
assert [(s["step"], s["status"]) for s in document["steps"]] == [("machine", 124), ("gemm", 77)], document
assert document["failed"] == 1, document
' "$T/limited/gpu.json" || die "$(cat "$T/limited/gpu.json")"
}

check 'directories of options become absolute' words
check 'a document with all steps' document
check 'steps and seconds' limited
finish
