#!/bin/sh
# All that needs a GPU, in one call of ten minutes: tests, trains, measures, and writes DIR/gpu.json after every step, and
# what every step said to DIR/gpu.log. Run it in the source tree:
#
#   contrib/gpu-measure.sh DIR [CONFIGURE-OPTION ...]      builds first; e.g. --with-starpu=PREFIX NVCCFLAGS='-O3 -arch=sm_90'
#   contrib/gpu-measure.sh --pack [CONFIGURE-OPTION ...]   builds only, for sm_90; programs, the libraries that they need
#                                                          but CUDA's, Open MPI's launcher if it is there, and Cora and
#                                                          Citeseer go into build/packed.tar.gz, to carry to a machine
#                                                          with the same source tree that cannot build: the first form
#                                                          takes it there if it is given no options
#
# SL_GPU_STEPS    names of the steps to take (all): kernels tasks train ranks gemm spmm epochs
#                 precisions scaling memory peers sanitizer
# SL_GPU_SECONDS  after which no step begins and the one that runs, but for the build, is ended (570 with packed programs,
#                 else none); each step has a limit of its own, too
# SL_GPU_SCALE    size of the graphs of `bench` (0.25 with packed programs, else 1)
# SL_SHARED_DATA  where real datasets are, if anywhere; packed ones are found without it
#
# A step that fails does not stop those after it; the exit status is the number of failed steps.
[ $# -ge 1 ] || {
    sed -n '2,20s/^# \{0,1\}//p' "$0"
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
data=${SL_SHARED_DATA:-$source/../shared/data}
datasets="cora citeseer"
programs="starling tests/test_cuda_kernels tests/test_tasks tests/test_tasks_norm tests/test_tasks_rows tests/test_tasks_training \
    tests/test_tasks_units tests/test_batches"

build() (
    [ -x "$source/configure" ] || autoreconf -fi "$source" || exit 1
    mkdir -p "$build" && cd "$build" && "$source/configure" --with-cuda "$@" && make -j"$jobs" all &&
        make -j"$jobs" $programs
)

# Libraries that the built programs need, but for the system's own and CUDA's, a path each line. Fails where one is missing.
libraries() {
    for program in $programs; do
        [ ! -x "$build/$program" ] || ldd "$build/$program"
    done | sort -u >"$build/libraries" || return 1
    gone=$(awk '/=> not found/ && $1 !~ /^libcuda[.]/ { print $1 }' "$build/libraries" | tr '\n' ' ')
    [ -z "$gone" ] || {
        echo "--pack: libraries are missing here: $gone(expected those that programs are linked with)" >&2
        return 1
    }
    awk '$2 == "=>" && $3 ~ /^\// { print $3 }' "$build/libraries" "$build/libraries.mpi" | sort -u |
        grep -Ev '/(ld-|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|cuda|cudart|cublas|cublasLt|cusparse|nv[a-zA-Z]*)[.-])' || true
}

# Open MPI's launcher and what it loads on one machine, in a folder for OPAL_PREFIX. Its libraries join the others.
pack_mpi() ( # FOLDER
    grep -q '"ompi' "$build/config.h" && command -v ompi_info >/dev/null 2>&1 || return 0
    for kind in pkglibdir pkgdatadir; do
        from=$(ompi_info --parsable --path $kind | sed 's/.*://') && to=$1/${from#/usr/} && mkdir -p "$to" &&
            cp -RL "$from/." "$to" || return 1
    done
    mkdir -p "$1/bin" && cp -L "$(command -v mpirun)" "$1/bin/mpirun" || return 1
    find "$1" -name 'mca_*.so' | grep -E '_(ucx|ofi|psm2?|openib|flux|slurm|monitoring)[.]so$' | xargs rm -f
    find "$1" -name 'mca_*.so' | xargs ldd "$1/bin/mpirun" >"$build/libraries.mpi"
)

# Programs without symbols, libraries, and datasets that are there.
pack() {
    to=$build/packed
    rm -rf "$to" "$packed"
    : >"$build/libraries.mpi"
    mkdir -p "$to/tests" "$to/lib" "$to/data" && pack_mpi "$to/mpi" && libraries >"$build/wanted" || return 1
    for program in $programs; do
        [ ! -x "$build/$program" ] || strip -o "$to/$program" "$build/$program" || return 1
    done
    while read -r library; do
        cp -L "$library" "$to/lib" || return 1
    done <"$build/wanted"
    for name in $datasets; do
        [ -d "$data/$name" ] || echo "--pack: $name is not in $data: it is left out" >&2
        [ ! -d "$data/$name" ] || cp -rL "$data/$name" "$to/data" || return 1
    done
    tar -C "$to" -czf "$packed" . && rm -rf "$to"
}

if [ $pack = yes ]; then
    case " $* " in *NVCCFLAGS=*) ;; *) set -- NVCCFLAGS='-O3 -arch=sm_90' "$@" ;; esac
    build --without-onednn "$@" && pack && du -h "$packed"
    exit
fi

begin=$(date +%s)
work=$(mktemp -d "${TMPDIR:-/tmp}/starling-gpu-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
trap leave HUP INT TERM
failed=0 steps=
seconds=$SL_GPU_SECONDS scale=${SL_GPU_SCALE:-1}
if [ -s "$packed" ] && [ $# -eq 0 ]; then
    seconds=${seconds:-570} scale=${SL_GPU_SCALE:-0.25}
fi
: >"$out/gpu.log"

# One document of all: what a step wrote is JSON, or lines of it, of which the last one has the figures. The epochs to
# compare with are those of MG-GCN on one A100, whose memory moves 2.0 TB/s.
document() {
    {
        printf '{"gpu":"%s","failed":%d,"scale":%s,' \
            "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 | tr -d '"\\')" \
            $failed "$scale"
        printf '"mg_gcn_a100_seconds":{"reddit":0.0331,"products":0.355},\n"steps":[%s]' "$steps"
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
    [ -z "$seconds" ] && echo 86400 || echo $((seconds - $(date +%s) + begin))
}

# What a step said is in the log: its status and time go into the document. Status 77: left out.
ended() { # NAME STATUS SECONDS
    [ "$2" -eq 0 ] || [ "$2" -eq 77 ] || failed=$((failed + 1))
    steps="$steps${steps:+,}{\"step\":\"$1\",\"status\":$2,\"seconds\":$3}"
    echo "$1: status $2, $3 s"
    document
}

# step NAME COMMAND ...
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
    ended "$name" $status $(($(date +%s) - started))
}

# The same of a program, which is ended when its limit, or the time of all, is over.
timed() { # NAME SECONDS COMMAND ...
    name=$1 most=$2 rest=$(left)
    shift 2
    [ "$rest" -gt "$most" ] || most=$rest
    step "$name" timeout -k 5 "$most" "$@"
}

# The same of programs side by side: beside begins one, together waits for one after the other. Seconds are those until then.
begun=
beside() { # NAME SECONDS COMMAND ...
    name=$1 most=$2 rest=$(left)
    shift 2
    [ "$rest" -gt "$most" ] || most=$rest
    if [ "$most" -lt 5 ]; then
        step "$name" true
        return
    fi
    timeout -k 5 "$most" "$@" >"$out/$name.said" 2>&1 </dev/null &
    begun="$begun $name:$!"
}

together() {
    started=$(date +%s)
    for one in $begun; do
        name=${one%:*}
        wait "${one#*:}"
        status=$?
        { echo "== $name" && cat "$out/$name.said"; } >>"$out/gpu.log"
        rm -f "$out/$name.said"
        ended "$name" $status $(($(date +%s) - started))
    done
    begun=
}

leave() {
    for one in $begun; do kill "${one#*:}" 2>/dev/null; done
    exit 1
}

wanted() { # STEP
    case " ${SL_GPU_STEPS:-$1} " in *" $1 "*) ;; *) return 1 ;; esac
}

# Where what the loader does not find is: CUDA's libraries may be in a folder of their own, or come with a Python package.
find_libraries() {
    gone=
    for library in $(ldd "$build/starling" "$build"/tests/test_* 2>/dev/null | awk '/=> not found/ { print $1 }' | sort -u); do
        at=$(find /usr/local/cuda*/ /usr/lib /usr/local/lib /usr/local/nvidia /opt "$HOME" -name "$library" 2>/dev/null | head -n 1)
        echo "$library: ${at:-nowhere}"
        [ -z "$at" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$at")
        case $library:$at in libcuda.*) ;; *:) gone=yes ;; esac
    done
    [ -z "$gone" ]
}

if [ -s "$packed" ] && [ $# -eq 0 ]; then
    echo "programs: $packed"
    build=$work/packed
    mkdir "$build" && tar -C "$build" -xzf "$packed" || exit 2
    [ -d "$data/cora" ] || data=$build/data
    LD_LIBRARY_PATH=$build/lib:/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    if [ -d "$build/mpi" ]; then
        OPAL_PREFIX=$build/mpi MPIRUN=$build/mpi/bin/mpirun
        export OPAL_PREFIX
    fi
    step libraries find_libraries
else
    step build build "$@"
fi
MPIRUN=${MPIRUN-$(command -v mpirun)}
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_pml=ob1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_pml
starling=$build/starling
XDG_CACHE_HOME=$work/cache STARPU_HOME=$work/starpu # what is remembered, and StarPU's models
export XDG_CACHE_HOME STARPU_HOME
mkdir -p "$STARPU_HOME"
timed machine 60 "$starling" info machine

# ---- Tests ----

# A training of each model, one epoch.
sanitizer() { # TOOL
    command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer"; return 77; }
    code=0
    for model in gcn "gcn --norm row" "sage --aggregator mean" "sage --aggregator max" gat gin "resgcn --layers 3" \
        "resgcn --layers 3 --block-norm batch"; do
        rest=$(left)
        [ "$rest" -gt 5 ] || { echo "no time left for $model"; return 1; }
        echo "$model"
        # shellcheck disable=SC2086
        STARPU_HOME=$work/starpu-$1 timeout -k 5 $((rest < 60 ? rest : 60)) compute-sanitizer --tool "$1" --error-exitcode 9 \
            "$starling" train "$source/examples/karate" --epochs 1 --device cuda --model $model || code=1
    done
    return $code
}

# The kernels' tests, each in a process of its own: a quarter of the cores runs them side by side. Status 77: no GPU.
kernels() {
    "$build/tests/test_cuda_kernels" none || return
    "$build/tests/test_cuda_kernels" --names >"$work/kernels" && [ -s "$work/kernels" ] || return 1
    rest=$(left)
    timeout -k 5 "$rest" xargs -d '\n' -P $((jobs / 4 + 1)) -I NAME sh -c '
        timeout -k 5 150 "$1" "$2" >"$3/kernel-$2.said" 2>&1
        code=$?
        cat "$3/kernel-$2.said"
        [ $code -eq 0 ] || { echo "FAIL $2: status $code"; exit 1; }' sh "$build/tests/test_cuda_kernels" NAME "$work" <"$work/kernels"
}

measured() {
    wanted spmm || wanted epochs || wanted precisions || wanted scaling || wanted peers
}

# Side by side: sixteen cores and one GPU have room for them. StarPU measures the bus only once, before.
if wanted tasks; then
    timed bus 60 "$starling" train "$source/examples/karate" --device cuda --epochs 1
    for part in 0 1 2 3 4 5; do
        cp -R "$STARPU_HOME" "$work/starpu-$part"
        beside "tasks-$part" 200 env SL_CASES=$part/6 STARPU_WORKERS_NOBIND=1 STARPU_HOME="$work/starpu-$part" top_srcdir="$source" top_builddir="$build" \
            STARLING="$starling" MPIRUN= SL_SHARED_DATA="$data" sh "$source/tests/gpu.sh"
    done
fi
if wanted kernels; then
    kernels >"$out/kernels.said" 2>&1 </dev/null &
    begun="$begun kernels:$!"
fi
if wanted sanitizer; then
    for tool in memcheck racecheck; do
        [ ! -d "$STARPU_HOME" ] || cp -R "$STARPU_HOME" "$work/starpu-$tool"
        sanitizer $tool >"$out/sanitizer-$tool.said" 2>&1 </dev/null &
        begun="$begun sanitizer-$tool:$!"
    done
fi
if measured; then
    for like in reddit products; do
        beside "graph-$like" 150 "$starling" generate like "$work/$like" --name $like --scale "$scale"
    done
fi
! wanted memory ||
    beside graph-memory 150 "$starling" generate community "$work/graph" --vertices 100000 --degree 50 --features 256 --classes 16
together

# ---- Training ----

losses() { # LOG
    sed -n 's/.*"epoch".*"loss":\([-0-9n][^,}]*\).*/\1/p' "$work/$1.jsonl"
}

# Losses of two logs, relative: what cuBLAS, and products that are fused with sums, may change in 20 epochs.
close_losses() { # LOG LOG
    losses "$1" >"$work/one"
    losses "$2" >"$work/two"
    paste "$work/one" "$work/two"
    [ "$(wc -l <"$work/one")" -eq 20 ] && paste "$work/one" "$work/two" | awk '
        NF != 2 || !(($1 - $2) ^ 2 <= (1e-4 * $1) ^ 2) { bad = 1 }
        END { exit bad }'
}

if wanted train; then
    for dataset in $datasets; do
        if [ ! -d "$data/$dataset" ]; then
            step "train-$dataset" sh -c 'echo "not there"; exit 77'
            continue
        fi
        for device in cpu cuda; do
            timed "train-$dataset-$device" 30 "$starling" train "$data/$dataset" --epochs 20 --device $device \
                --log "$work/train-$dataset-$device.jsonl"
        done
        step "train-$dataset-close" close_losses "train-$dataset-cpu" "train-$dataset-cuda"
        timed "train-$dataset" 30 "$starling" train "$data/$dataset" --device cuda --log "$work/train-$dataset.jsonl"
    done
fi

# Ranks that share the GPU: losses are those of one rank.
ranks() { # RANKS OPTION ...
    count=$1
    shift
    rest=$(left)
    STARPU_WORKERS_NOBIND=1 STARPU_MPI_NOBIND=1 timeout $((rest < 60 ? rest : 60)) "$MPIRUN" -n "$count" --bind-to none "$starling" train "$work/small" \
        --epochs 20 --device cuda "$@" --log "$work/ranks-$count.jsonl" && close_losses ranks-1 "ranks-$count"
}
if wanted ranks; then
    if [ -n "$MPIRUN" ]; then
        timed graph-small 30 "$starling" generate community "$work/small" --vertices 4000 --degree 12 --features 40 --classes 5
        for options in "" "--model sage --aggregator max" "--model gat" "--model resgcn --block-norm batch"; do
            # shellcheck disable=SC2086
            timed "ranks-1 $options" 60 "$starling" train "$work/small" --epochs 20 --device cuda $options \
                --log "$work/ranks-1.jsonl"
            for cut in "2 1d" "4 1d" "4 2d" "2 halo" "4 halo" "2 vertex-cut" "4 vertex-cut"; do
                # shellcheck disable=SC2086
                step "ranks-${cut% *}-${cut#* } $options" ranks ${cut% *} --distribution ${cut#* } $options
            done
        done
    else
        step ranks sh -c 'echo "no mpirun"; exit 77'
    fi
fi

# ---- Measurements ----

! wanted gemm || timed gemm 60 "$starling" bench gemm --device cuda --json "$work/gemm.json"

epochs() { # NAME LIKE OPTION ...
    name=$1 like=$2
    shift 2
    case $like in
    reddit) set -- --layers 2 --hidden 16 --epochs 30 "$@" ;;
    products) set -- --layers 3 --hidden 256 --epochs 10 "$@" ;;
    esac
    timed "$name" 90 "$starling" bench epoch "$work/$like" --repetitions 2 "$@" --json "$work/$name.json"
}

# GPUs alone, with the cores, and the cores alone: together no slower than the GPUs. Before anything is remembered.
if wanted epochs; then
    epochs epoch-reddit reddit --device-list cuda,both,cpu
    epochs epoch-products products --device-list cuda,both
fi
if wanted spmm; then
    for like in reddit products; do
        timed "spmm-$like" 60 "$starling" bench spmm --device cuda --dataset "$work/$like" --width 16,41,128,256,512 --remember \
            --json "$work/spmm-$like.json"
    done
    # The kernel that was faster, now that it is known.
    ! wanted epochs || epochs epoch-reddit-fastest reddit --device cuda
    ! wanted epochs || epochs epoch-products-fastest products --device cuda
fi
if wanted precisions; then
    for precision in tf32 bf16; do
        epochs "epoch-reddit-$precision" reddit --device cuda --precision $precision
        epochs "epoch-products-$precision" products --device cuda --precision $precision
    done
fi
# The cores alone, some of them and then all.
if wanted scaling; then
    cores=$(nproc)
    for workers in 1 2 4 8 16; do
        [ $workers -le "$cores" ] || continue
        timed "scaling-spmm-$workers" 30 taskset -c "0-$((workers - 1))" "$starling" bench spmm --dataset "$work/reddit" \
            --width 64 --repetitions 3 --json "$work/scaling-spmm-$workers.json"
        timed "scaling-gemm-$workers" 30 taskset -c "0-$((workers - 1))" "$starling" bench gemm --shapes 100000x64x256 \
            --repetitions 3 --json "$work/scaling-gemm-$workers.json"
        timed "scaling-epoch-$workers" 40 "$starling" bench epoch "$work/reddit" --layers 2 --hidden 64 --epochs 5 \
            --repetitions 1 --device cpu --workers $workers --json "$work/scaling-epoch-$workers.json"
    done
fi
# Less memory on the GPU than the matrices take: tiles come and go, and the results are the same.
if wanted memory; then
    for limit in 256 4096; do
        timed "memory-$limit" 40 env STARPU_LIMIT_CUDA_MEM=$limit "$starling" train "$work/graph" --hidden 256 --layers 3 \
            --tiles 32 --epochs 5 --device cuda --spmm own --log "$work/memory-$limit.jsonl"
        losses "memory-$limit" >"$work/losses-$limit" 2>/dev/null
    done
    step memory-same sh -c '[ -s "$1" ] && cmp "$1" "$2"' sh "$work/losses-256" "$work/losses-4096"
fi
# PyTorch Geometric on the same GPU, where it is there.
if wanted peers; then
    there=no
    if [ "$(left)" -gt 60 ] && timeout 60 python3 -c 'import torch_geometric, scipy' 2>/dev/null; then there=yes; fi
    for run in "reddit 16 2 30" "products 256 3 10"; do
        # shellcheck disable=SC2086
        set -- $run
        if [ $there = yes ]; then
            timed "peers-$1" 120 python3 "$source/contrib/peers.py" "$starling" "$work/$1" \
                --hidden $2 --layers $3 --epochs $4 --rounds 2 --device cuda
        else
            step "peers-$1" sh -c 'echo "no torch_geometric"; exit 77'
        fi
    done
fi
echo "$out/gpu.json: $failed steps failed"
exit $failed
