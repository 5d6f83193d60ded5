#!/bin/sh
# All that needs a GPU, in one call: builds with CUDA, tests, measures, and writes DIR/gpu.json, and what every step said
# to DIR/gpu.log. Run it in the source tree:
#
#   contrib/gpu-measure.sh DIR [CONFIGURE-OPTION ...]      e.g. --with-starpu=PREFIX NVCCFLAGS='-O3 -arch=sm_90'
#   contrib/gpu-measure.sh --pack [CONFIGURE-OPTION ...]   builds only, without MPI; programs and libraries but CUDA's go
#                                                          into build/packed.tar.gz, to carry to a machine with the same
#                                                          source tree that cannot build: the first form takes it there
#                                                          if it is given no options
#
# SL_GPU_STEPS    names of the steps to take (all): kernels tasks spmm epochs precisions gemm train memory sanitizer
# SL_GPU_SECONDS  after which no step begins and the one that runs, but for the build, is ended (none); the JSON is complete
#                 after each step
# SL_GPU_SCALE    size of the graphs of `bench`, 1 if not set
# SL_SHARED_DATA  where real datasets are, if anywhere
#
# A step that fails does not stop those after it; the exit status is the number of failed steps.
[ $# -ge 1 ] || {
    sed -n '2,19s/^# \{0,1\}//p' "$0"
    exit 2
}
source=$(cd "$(dirname "$0")/.." && pwd)
packed=$source/build/packed.tar.gz
build=$source/build/measure
pack=no
if [ "$1" = --pack ]; then
    pack=yes
else
    mkdir -p "$1" || exit 2
    out=$(cd "$1" && pwd)
fi
shift
# configure runs in a directory of its own, so directories are made absolute.
for word; do
    shift
    case $word in
    --*=*) [ ! -d "${word#*=}" ] || word=${word%%=*}=$(cd "${word#*=}" && pwd) ;;
    esac
    set -- "$@" "$word"
done
jobs=$(getconf _NPROCESSORS_ONLN)
programs="starling tests/test_cuda_kernels tests/test_tasks tests/test_tasks_rows tests/test_tasks_training"

build() (
    [ -x "$source/configure" ] || autoreconf -fi "$source" || exit 1
    mkdir -p "$build" && cd "$build" && "$source/configure" --with-cuda "$@" && make -j"$jobs" all &&
        make -j"$jobs" $programs
)

# The programs without symbols, and the libraries that they need but for the system's own and CUDA's.
pack() {
    to=$build/packed
    rm -rf "$to" "$packed"
    mkdir -p "$to/tests" "$to/lib" || return 1
    for program in $programs; do
        [ ! -x "$build/$program" ] || strip -o "$to/$program" "$build/$program" || return 1
    done
    find "$to" -type f -exec ldd {} \; | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -Ev '/(ld-|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|cuda|cudart|cublas|cublasLt|cusparse|nv[a-zA-Z]*)[.-])' |
        while read -r library; do cp -L "$library" "$to/lib" || exit 1; done &&
        tar -C "$to" -czf "$packed" . && rm -rf "$to"
}

if [ $pack = yes ]; then
    build --without-mpi "$@" && pack && du -h "$packed"
    exit
fi

begin=$(date +%s)
data=${SL_SHARED_DATA:-$source/../shared/data}
scale=${SL_GPU_SCALE:-1}
work=$(mktemp -d "${TMPDIR:-/tmp}/starling-gpu-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failed=0 steps=
: >"$out/gpu.log"

# One document of all: what a step wrote is JSON, or lines of it, of which the last one has the figures. The epochs to
# compare with are those of MG-GCN on one A100, times 2.0 / 4.8, for the bandwidths of its memory and an H200's.
document() {
    {
        printf '{"gpu":"%s","failed":%d,"scale":%s,' \
            "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 | tr -d '"\\')" \
            $failed "$scale"
        printf '"mg_gcn_seconds_scaled":{"reddit":0.0138,"products":0.148},\n"steps":[%s]' "$steps"
        for file in "$work"/*.json "$work"/*.jsonl; do
            [ -s "$file" ] && printf ',\n"%s":%s' "$(basename "$file" | sed 's/\..*//')" "$(case $file in
                *.jsonl) tail -n 1 "$file" ;;
                *) cat "$file" ;;
                esac)"
        done
        printf '}\n'
    } >"$out/gpu.json.new" && mv "$out/gpu.json.new" "$out/gpu.json"
}

left() {
    [ -z "$SL_GPU_SECONDS" ] && echo 86400 || echo $((SL_GPU_SECONDS - $(date +%s) + begin))
}

# step NAME COMMAND ...; status 77: left out.
step() {
    name=$1
    shift
    started=$(date +%s)
    echo "== $name" >>"$out/gpu.log"
    if [ "$(left)" -lt 5 ]; then
        status=77
        echo "no time left" >>"$out/gpu.log"
    else
        "$@" >>"$out/gpu.log" 2>&1 </dev/null
        status=$?
    fi
    [ $status -eq 0 ] || [ $status -eq 77 ] || failed=$((failed + 1))
    steps="$steps${steps:+,}{\"step\":\"$name\",\"status\":$status,\"seconds\":$(($(date +%s) - started))}"
    echo "$name: status $status"
    document
}

# The same of a program, which is ended when the time is over.
timed() {
    name=$1
    shift
    step "$name" timeout -k 5 "$(left)" "$@"
}

wanted() { # STEP
    case " ${SL_GPU_STEPS:-$1} " in *" $1 "*) ;; *) return 1 ;; esac
}

if [ -s "$packed" ] && [ $# -eq 0 ]; then
    echo "programs: $packed"
    build=$work/packed
    mkdir "$build" && tar -C "$build" -xzf "$packed" || exit 2
    LD_LIBRARY_PATH=$build/lib:/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
else
    step build build "$@"
fi
starling=$build/starling
XDG_CACHE_HOME=$work/cache STARPU_HOME=$work/starpu # what is remembered, and StarPU's models
export XDG_CACHE_HOME STARPU_HOME
mkdir -p "$STARPU_HOME"
timed machine "$starling" info machine

! wanted kernels || timed kernels "$build/tests/test_cuda_kernels"

if wanted spmm || wanted epochs || wanted precisions; then
    for like in reddit products; do
        timed "graph-$like" "$starling" generate like "$work/$like" --name $like --scale "$scale"
    done
fi
# GPUs alone, with the cores, and the cores alone: together no slower than the GPUs. Before anything is remembered.
if wanted epochs; then
    timed epoch-reddit "$starling" bench epoch "$work/reddit" --layers 2 --hidden 16 --epochs 30 --repetitions 2 \
        --device-list cuda,both,cpu --json "$work/epoch-reddit.json"
    timed epoch-products "$starling" bench epoch "$work/products" --layers 3 --hidden 256 --epochs 10 --repetitions 2 \
        --device-list cuda,both --json "$work/epoch-products.json"
fi
if wanted precisions; then
    for precision in tf32 bf16; do
        timed "epoch-reddit-$precision" "$starling" bench epoch "$work/reddit" --layers 2 --hidden 16 --epochs 30 \
            --repetitions 2 --device cuda --precision $precision --json "$work/epoch-reddit-$precision.json"
        timed "epoch-products-$precision" "$starling" bench epoch "$work/products" --layers 3 --hidden 256 --epochs 10 \
            --repetitions 2 --device cuda --precision $precision --json "$work/epoch-products-$precision.json"
    done
fi
if wanted spmm; then
    for like in reddit products; do
        timed "spmm-$like" "$starling" bench spmm --device cuda --dataset "$work/$like" --width 16,41,128,256,512 --remember \
            --json "$work/spmm-$like.json"
    done
    # The kernel that was faster, now that it is known.
    ! wanted epochs || timed epoch-reddit-fastest "$starling" bench epoch "$work/reddit" --layers 2 --hidden 16 \
        --epochs 30 --repetitions 2 --device cuda --json "$work/epoch-reddit-fastest.json"
    ! wanted epochs || timed epoch-products-fastest "$starling" bench epoch "$work/products" --layers 3 --hidden 256 \
        --epochs 10 --repetitions 2 --device cuda --json "$work/epoch-products-fastest.json"
fi
rm -rf "$work/reddit" "$work/products"
if wanted gemm; then
    timed gemm "$starling" bench gemm --device cuda --json "$work/gemm.json"
fi
if wanted train; then
    for name in cora citeseer; do
        [ -d "$data/$name" ] && timed "train-$name" "$starling" train "$data/$name" --device cuda \
            --log "$work/train-$name.jsonl"
    done
fi
# Less memory on the GPU than the matrices take: tiles come and go, and the results are the same.
if wanted memory; then
    timed graph-memory "$starling" generate community "$work/graph" --vertices 100000 --degree 50 --features 256 --classes 16
    for limit in 256 4096; do
        timed "memory-$limit" env STARPU_LIMIT_CUDA_MEM=$limit "$starling" train "$work/graph" --hidden 256 --layers 3 \
            --tiles 32 --epochs 5 --device cuda --log "$work/memory-$limit.jsonl"
        sed -n 's/.*"epoch".*"loss":\([^,}]*\).*/\1/p' "$work/memory-$limit.jsonl" >"$work/losses-$limit" 2>/dev/null
    done
    step memory-same sh -c '[ -s "$1" ] && cmp "$1" "$2"' sh "$work/losses-256" "$work/losses-4096"
fi
if wanted tasks; then
    timed tasks env top_srcdir="$source" top_builddir="$build" STARLING="$starling" MPIRUN= SL_SHARED_DATA="$data" \
        sh "$source/tests/gpu.sh"
fi
if wanted sanitizer; then
    if command -v compute-sanitizer >/dev/null; then
        timed sanitizer compute-sanitizer --error-exitcode 9 "$build/tests/test_cuda_kernels"
    else
        step sanitizer sh -c 'echo "no compute-sanitizer"; exit 77'
    fi
fi
echo "$out/gpu.json: $failed steps failed"
exit $failed
