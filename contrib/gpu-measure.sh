#!/bin/sh
# All that needs a GPU, in one call: builds with CUDA, tests, trains, measures, and writes DIR/gpu.json beside a log of
# each step. Run it in the source tree:
#
#   contrib/gpu-measure.sh DIR [CONFIGURE-OPTION ...]      e.g. --with-starpu=PREFIX --with-cuda=/usr/local/cuda
#
# SL_GPU_SCALE, 1 if not set, is the size of the graphs of `bench`; SL_SHARED_DATA, where real datasets are, is optional.
# A step that fails does not stop those after it; the exit status is the number of failed steps.
[ $# -ge 1 ] || {
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 2
}
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
shift
# configure runs in a directory of its own, so directories are made absolute.
for word; do
    shift
    case $word in
    --*=*) [ ! -d "${word#*=}" ] || word=${word%%=*}=$(cd "${word#*=}" && pwd) ;;
    esac
    set -- "$@" "$word"
done
scale=${SL_GPU_SCALE:-1}
data=${SL_SHARED_DATA:-$source/../shared/data}
build=$out/build
starling=$build/starling
failed=0 steps=

# step NAME COMMAND ...: its output goes to NAME.log.
step() {
    name=$1
    shift
    begin=$(date +%s)
    "$@" >"$out/$name.log" 2>&1 </dev/null
    status=$?
    [ $status -eq 0 ] || [ $status -eq 77 ] || failed=$((failed + 1))
    steps="$steps${steps:+,}{\"step\":\"$name\",\"status\":$status,\"seconds\":$(($(date +%s) - begin))}"
    echo "$name: status $status"
}

build() (
    mkdir -p "$build" && cd "$build" && "$source/configure" --with-cuda "$@" && make -j"$(getconf _NPROCESSORS_ONLN)" all &&
        make -j"$(getconf _NPROCESSORS_ONLN)" check TESTS=
)

in_build() (
    cd "$build" && "$@"
)

[ -x "$source/configure" ] || step autoreconf autoreconf -fi "$source"
step build build "$@"
step machine "$starling" info machine
step kernels in_build tests/test_cuda_kernels
command -v compute-sanitizer >/dev/null &&
    step sanitizer timeout 900 compute-sanitizer --error-exitcode 9 "$build/tests/test_cuda_kernels"
step tasks in_build make check TESTS=tests/gpu.sh
for name in cora citeseer; do
    [ -d "$data/$name" ] && step "train-$name" "$starling" train "$data/$name" --log "$out/train-$name.jsonl"
done
# Less memory on the GPU than the matrices take: tiles come and go.
step graph "$starling" generate community "$out/graph" --vertices 100000 --degree 50 --features 256 --classes 16
step little env STARPU_LIMIT_CUDA_MEM=256 "$starling" train "$out/graph" --hidden 256 --layers 3 --epochs 5 \
    --log "$out/little.jsonl"
step free "$starling" train "$out/graph" --hidden 256 --layers 3 --epochs 5 --log "$out/free.jsonl"
XDG_CACHE_HOME=$out/cache # of what is remembered
export XDG_CACHE_HOME
step gemm "$starling" bench gemm --device cuda --json "$out/gemm.json"
for like in reddit products; do
    step "spmm-$like" "$starling" bench spmm --device cuda --like $like --scale "$scale" --width 16,41,128,256,512 --remember \
        --json "$out/spmm-$like.json"
done
# GPUs alone, with the cores, and the cores alone: together no slower than the GPUs.
step epoch-reddit "$starling" bench epoch --like reddit --scale "$scale" --layers 2 --hidden 16 --epochs 30 \
    --device-list cuda,both,cpu --json "$out/epoch-reddit.json"
step epoch-products "$starling" bench epoch --like products --scale "$scale" --layers 3 --hidden 256 --epochs 30 \
    --device-list cuda,both --json "$out/epoch-products.json"

# One document of all: what each step wrote is JSON, or lines of it, of which the last one has the figures.
{
    printf '{"gpu":"%s","failed":%d,"steps":[%s]' \
        "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 | tr -d '"\\')" $failed "$steps"
    for file in "$out"/gemm.json "$out"/spmm-*.json "$out"/epoch-*.json "$out"/*.jsonl; do
        [ -s "$file" ] && printf ',\n"%s":%s' "$(basename "$file" | sed 's/\..*//')" "$(case $file in
            *.jsonl) tail -n 1 "$file" ;;
            *) cat "$file" ;;
            esac)"
    done
    printf '}\n'
} >"$out/gpu.json"
echo "$out/gpu.json: $failed steps failed"
exit $failed
