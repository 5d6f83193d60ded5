#!/bin/sh
# Training on GPUs: as on the cores, up to rounding (on real ones, where cuBLAS and fused products round in other ways, up
# to 1e-4, and what StarPU notes on stderr is no failure); with the same GPU kernels the same to the bit, whatever the scheduler,
# the number of GPUs and their speed. Skipped where the program sees no GPU. A build --with-cuda=software sees those that
# tests/software_gpu makes, whose streams can be made to lag, and which count what is copied and waited for.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
alike="on_gpu like_cores lagging together on_ranks cusparse citations fastest evicted"
unset STARPU_NCUDA
SOFTWARE_GPU_COUNT=2
export SOFTWARE_GPU_COUNT
software=no
near=1e-4
"$STARLING" info machine | grep -q 'software GPU' && software=yes near=1e-6
"$STARLING" train "$karate" --epochs 1 --device cuda >"$T/out" 2>&1 </dev/null || {
    cat "$T/out"
    [ $software = no ] && grep -q '^starling: --device cuda: ' "$T/out" && exit 77
    exit 1
}
"$STARLING" generate community "$T/graph" --vertices 400 --classes 4 --degree 8 --features 24 --seed 1 >/dev/null || exit 1

# trained NAME DATASET ARGUMENT ...: with a log of that name.
trained() {
    log=$T/$1 data=$2
    shift 2
    timeout --foreground 1200 $launch "$STARLING" train "$data" --hidden 16 --log "$log" "$@" >"$T/out" 2>"$T/err" </dev/null ||
        die "exit status $?: $(cat "$T/out" "$T/err")"
    [ ! -s "$T/err" ] || [ $software = no ] || die "on stderr: $(cat "$T/err")"
}
launch=

losses() { # NAME
    sed -n 's/.*"epoch".*"loss":\([^",}][^",}]*\).*/\1/p' "$T/$1"
}

# close NAME NAME TOLERANCE: relative.
close() {
    losses "$1" >"$T/one"
    losses "$2" >"$T/two"
    [ "$(wc -l <"$T/one")" -ge 6 ] || die "too few losses"
    paste "$T/one" "$T/two" | awk -v tolerance="$3" '
        NF != 2 || !(($1 - $2) ^ 2 <= (tolerance * $1) ^ 2) { print "epoch " NR ": " $0; bad = 1 }
        END { exit bad }' || die "other losses in $2 than in $1"
}

same() { # NAME NAME
    losses "$1" >"$T/one"
    losses "$2" >"$T/two"
    [ "$(wc -l <"$T/one")" -ge 6 ] || die "too few losses"
    cmp "$T/one" "$T/two" || die "other losses in $2 than in $1"
}

# with_edges NAME: a copy of the graph whose edges have features, the first numbers of those of vertices.
with_edges() {
    cp -r "$T/graph" "$T/$1"
    nnz=$(sed -n 's/.*"nnz": \([0-9]*\).*/\1/p' "$T/graph/meta.json")
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($nnz, 2)}" >"$T/$1/edge_features.npy"
    tail -c +129 "$T/graph/features.npy" | head -c $((8 * nnz)) >>"$T/$1/edge_features.npy"
}

# like_cores TOLERANCE ARGUMENT ...: on GPUs as on cores, on $graph.
graph=$T/graph
like_cores() {
    tolerance=$1
    shift
    case " $* " in *" --epochs "*) ;; *) set -- --epochs 8 "$@" ;; esac
    trained cores "$graph" --tiles 3 "$@" --device cpu
    trained gpus "$graph" --tiles 3 "$@" --device cuda
    close cores gpus "$tolerance"
}

if [ $software = yes ]; then
    check "GPUs are listed" sh -c '"$STARLING" info machine | grep -q "cuda1: software GPU"'
fi

# Every operation as a task, against the kernels of the cores. One GPU: a thread that waits for another takes a core.
on_gpu() { # PROGRAM
    SL_TEST_DEVICE=cuda SOFTWARE_GPU_COUNT=1 timeout --foreground 1200 "${top_builddir:-.}/$1"
}
for program in $gpu_unit_tests; do
    check "${program#tests/}" on_gpu "$program"
done

# What a layer computes, what is stored, what is dropped: on two GPUs.
check "gcn" like_cores $near
for aggregator in gcn mean sum max; do
    check "sage, $aggregator" like_cores $near --model sage --aggregator $aggregator
done
for options in "" "--heads 3 --out-heads 2 --layers 3 --block-columns 64" "--dropout 0 --attention-dropout 0"; do
    # shellcheck disable=SC2086
    check "gat $options" like_cores $near --model gat $options
done
for options in "resgcn --layers 3" "resgcn --layers 5 --block-norm batch --recompute 2 --clip-norm 1" gin sgc "appnp --hops 3" \
    "jknet --layers 3" "gcn --norm-layers batch --residual linear --classifier linear" "gat --norm-layers row" \
    "gat --residual linear --classifier linear --encoder linear" "gcn --encoder linear --activation elu" \
    "gcn --layers 3 --residual identity --jump sum" "sage --layers 3 --jump concat" "gcn --layers 3 --norm-layers row --jump max"; do
    # shellcheck disable=SC2086
    check "$options" like_cores $near --model $options --lr 0.01
done
for options in "gatv2 --heads 2" "transformer --heads 2"; do
    # shellcheck disable=SC2086
    check "$options" like_cores $near --model $options --lr 0.01
done
with_edges edges
graph=$T/edges
for options in "gat --heads 2" "gatv2 --heads 2 --residual linear --classifier linear" "transformer --heads 2" "gine --layers 3"; do
    # shellcheck disable=SC2086
    check "edge features, $options" like_cores $near --model $options --lr 0.01
done
"$STARLING" generate like "$T/related" --name mag --scale 0.0003 --seed 1 >/dev/null || exit 1
graph=$T/related
for options in "--layers 3" "--bases 3 --classifier linear" "--encoder linear --norm-layers row --no-bias"; do
    # shellcheck disable=SC2086
    check "rgcn $options" like_cores $near --model rgcn $options --lr 0.01
done
graph=$T/graph
for options in dot "distmult --loss bpr --negatives 3" "mlp --embedding 9"; do
    # shellcheck disable=SC2086
    check "links, $options" like_cores $near --task links --split-edges 80/10/10 --lr 0.01 --decoder $options
done
for options in "--layers 3 --norm row" "--dropout 0" "--dropout 0 --no-cache-aggregate" "--product-order gemm" \
    "--dropout 0 --product-order spmm" "--no-bias --optimizer sgd" "--optimizer adamw --weight-decay-all" "--patience 2" \
    "--block-columns 64" "--order double" "--normalize-features l1"; do
    # shellcheck disable=SC2086
    check "gcn $options" like_cores $near $options
done
for options in "--precision tf32" "--precision bf16" "--precision bf16 --layers 3 --dropout 0" \
    "--precision bf16 --model sage" "--precision bf16 --model sage --aggregator max" "--precision bf16 --model resgcn" \
    "--precision bf16 --model resgcn --block-norm batch"; do
    # shellcheck disable=SC2086
    check "$options" like_cores 1e-2 $options
done

# Blocks of sub-models, on the GPU and, where they are in a file, on the cores. An ensemble has a mean of probabilities.
for options in "--submodels 4 --local-steps 2 --epochs 24" "--submodels 2 --split-layers 0,1,2 --unit-sums scaled --epochs 12" \
    "--submodels 2 --share none --epochs 12" "--submodels 2 --share copies --model gat --epochs 12" \
    "--submodels 3 --local-steps 2 --model resgcn --epochs 18"; do
    # shellcheck disable=SC2086
    check "$options" like_cores $near --layers 3 $options
done
in_a_file() {
    for device in cpu cuda; do
        trained $device "$T/graph" --layers 3 --submodels 2 --epochs 12 --tiles 3 --store "$T" --device $device
        trained ${device}_memory "$T/graph" --layers 3 --submodels 2 --epochs 12 --tiles 3 --device $device
        same $device ${device}_memory
    done
    close cpu cuda $near
}
check "sub-models in a file" in_a_file

# Batches that are drawn anew take handles of batches of other sizes.
for options in "clusters:6,2" "co:3 --max-hop 1 --resample 1"; do
    # shellcheck disable=SC2086
    check "--batches $options" like_cores $near --batches $options
done

by_default() {
    exits 0 train "$karate" --epochs 2
    grep -q '1 worker + [1-9][0-9]* GPU' "$T/out" || die "not GPUs alone: $(cat "$T/out")"
    exits 0 train "$karate" --epochs 2 --workers 3
    grep -q '3 workers + [1-9][0-9]* GPU' "$T/out" || die "not both: $(cat "$T/out")"
}
check "GPUs alone by default" by_default

karate_like_cores() {
    trained cores "$karate" --epochs 20 --device cpu
    trained gpus "$karate" --epochs 20 --device cuda
    close cores gpus $near
}
check "identity features" karate_like_cores

citations() { # NAME: bags of words, as sparse features
    [ -d "$SL_SHARED_DATA/$1" ] || skip "not in ${SL_SHARED_DATA:-\$SL_SHARED_DATA}"
    trained cores "$SL_SHARED_DATA/$1" --epochs 6 --device cpu
    trained gpus "$SL_SHARED_DATA/$1" --epochs 6 --device cuda
    close cores gpus $near
}
for name in cora citeseer; do
    check "$name" citations $name
done

# Sparse products by cuSPARSE: as ours up to rounding, and the same again.
sparse_products() {
    sed -n 's/.*"sparse_products": *\([0-9]*\).*/\1/p' "$T/counts"
}
cusparse() { # PRODUCTS ARGUMENT ...: at least so many in the eight epochs
    least=$1
    shift
    trained cores "$T/graph" --epochs 8 "$@" --device cpu
    rm -f "$T/counts"
    SOFTWARE_GPU_COUNTS=$T/counts
    export SOFTWARE_GPU_COUNTS
    trained library "$T/graph" --epochs 8 "$@" --device cuda --spmm cusparse
    [ $software = no ] || [ "$(sparse_products)" -ge "$least" ] || die "$(sparse_products) products by cuSPARSE"
    rm -f "$T/counts"
    trained own "$T/graph" --epochs 8 "$@" --device cuda --spmm own
    [ $software = no ] || [ "$(sparse_products)" -eq 0 ] || die "$(sparse_products) products by cuSPARSE, unasked"
    trained again "$T/graph" --epochs 8 "$@" --device cuda --spmm cusparse --scheduler lws
    close cores library $near
    same library again
}
# Two products of each epoch at least, a layer's back and forth, with each tile of the adjacency.
check "cuSPARSE" cusparse 16 --tiles 1
check "cuSPARSE, tiles" cusparse 256 --tiles 4
check "cuSPARSE, GraphSAGE in blocks" cusparse 256 --tiles 4 --model sage --block-columns 64 --layers 3

# What was remembered of tiles of that shape decides: a row of the graph has nine entries, and one of a tile two.
fastest() { # DEGREE TIMES EXPECTED
    XDG_CACHE_HOME=$T/cache SOFTWARE_GPU_COUNTS=$T/counts SOFTWARE_GPU_MEMORY=4096
    export XDG_CACHE_HOME SOFTWARE_GPU_COUNTS SOFTWARE_GPU_MEMORY
    rm -rf "$XDG_CACHE_HOME"
    exits 0 bench spmm --device cuda --vertices 50 --degree "$1" --width 16 --repetitions 1 --remember
    sed "s/\"times\": .*/\"times\": $2/" "$XDG_CACHE_HOME/starling/spmm.json" >"$T/spmm"
    cp "$T/spmm" "$XDG_CACHE_HOME/starling/spmm.json"
    rm -f "$T/counts"
    trained remembered "$T/graph" --epochs 8 --tiles 4 --device cuda
    [ $software = no ] || [ "$(($(sparse_products) > 0))" -eq "$3" ] || die "$(sparse_products) products by cuSPARSE"
}
check "cuSPARSE, remembered as slower" fastest 2 1.5 0
check "cuSPARSE, remembered as faster" fastest 2 0.5 1
check "cuSPARSE, remembered as faster with larger tiles" fastest 9 0.5 0

none_fit() {
    exits 0 train "$T/graph" --epochs 2 --device cuda --tiles 4 --spmm cusparse --precision bf16
    [ "$(grep -c 'spmm cusparse: no sparse product' "$T/err")" -eq 1 ] || die "not said once: $(cat "$T/err")"
}
check "cuSPARSE, and nothing for it" none_fit

# The same kernels on other GPUs, in another order, at other times.
trained reference "$T/graph" --epochs 8 --tiles 4 --device cuda
repeats() { # ARGUMENT ...
    trained again "$T/graph" --epochs 8 --tiles 4 --device cuda "$@"
    same reference again
}
lagging() { # MICROSECONDS SEED GPUS ARGUMENT ...
    SOFTWARE_GPU_DELAY=$1 SOFTWARE_GPU_SEED=$2 SOFTWARE_GPU_COUNT=$3
    export SOFTWARE_GPU_DELAY SOFTWARE_GPU_SEED
    shift 3
    repeats "$@"
}
check "again" repeats
check "GPUs that lag, 1" lagging 1000 1 1
check "GPUs that lag, 2" lagging 300 2 2
check "GPUs that lag, 3" lagging 300 3 3
for scheduler in dm dmda dmdar dmdas dmdasd eager lws random; do
    check "scheduler $scheduler" lagging 100 4 2 --scheduler $scheduler
done

# Cores and GPUs together: which kernel has a tile is the scheduler's choice.
together() { # SCHEDULER
    SOFTWARE_GPU_DELAY=100
    export SOFTWARE_GPU_DELAY
    trained both "$T/graph" --epochs 8 --tiles 4 --device both --scheduler "$1"
    close reference both $near
}
for scheduler in dmda dmdas lws eager random; do
    check "cores and GPUs, $scheduler" together $scheduler
done

refused() {
    exits 2 train "$T/graph" --epochs 1 --scheduler heteroprio
    sentence "does not go with GPUs" "$T/err"
}
check "heteroprio" refused

resumed() {
    trained first "$T/graph" --epochs 8 --tiles 4 --device cuda --checkpoint "$T/ck"
    trained second "$T/graph" --epochs 14 --tiles 4 --device cuda --resume "$T/ck"
    trained whole "$T/graph" --epochs 14 --tiles 4 --device cuda
    losses whole | tail -n 6 >"$T/one"
    losses second >"$T/two"
    cmp "$T/one" "$T/two" || die "a resumed run differs"
}
check "a checkpoint" resumed

# Ranks, of which each has a GPU.
on_ranks() { # ARGUMENT ...
    launch="$MPIRUN -n 2"
    SOFTWARE_GPU_DELAY=100
    export SOFTWARE_GPU_DELAY
    case " $* " in *" --epochs "*) ;; *) set -- --epochs 6 "$@" ;; esac
    trained cores "$T/graph" "$@" --device cpu
    trained gpus "$T/graph" "$@" --device cuda
    close cores gpus $near
}

# Ranks share the GPUs that they see, whatever number the user allows each of them.
shared() { # NUMBER-OF-GPUS TEXT [VARIABLE=VALUE]
    env SOFTWARE_GPU_COUNT="$1" ${3:+"$3"} $MPIRUN -n 2 "$STARLING" train "$T/graph" --epochs 2 --tiles 4 >"$T/shared" 2>&1 ||
        die "$(cat "$T/shared")"
    grep -q "worker.* + $2, messages" "$T/shared" || die "not $2: $(cat "$T/shared")"
}

if [ -n "$MPIRUN" ]; then
    for options in 1d 1.5d halo cover vertex-cut "vertex-cut --delay cd-2" "1d --model sage --aggregator max" \
        "1.5d --model sage --aggregator max" "cover --model sage --aggregator max" "vertex-cut --model sage --aggregator max" \
        "1.5d --model gat" "cover --model gat" "vertex-cut --model gat" "halo --model resgcn --block-norm batch" \
        "vertex-cut --model resgcn --block-norm batch"; do
        # shellcheck disable=SC2086
        check "2 ranks, $options" on_ranks --distribution $options
    done
    check "2 ranks, sub-models" on_ranks --groups 2x1 --submodels 2 --local-steps 2 --layers 3 --epochs 12
    check "2 ranks, 1x2x1" on_ranks --grid 1x2x1
    check "2 ranks, 1x2x1, gat" on_ranks --grid 1x2x1 --model gat
    check "2 ranks, 1x2x1, resgcn" on_ranks --grid 1x2x1 --model resgcn
    check "2 ranks, 1x2x1, resgcn, normalised columns" on_ranks --grid 1x2x1 --model resgcn --block-norm batch
    check "2 ranks, 1x2x1, appnp" on_ranks --grid 1x2x1 --model appnp
    check "2 ranks, 2 GPUs" shared 2 "1 GPU"
    check "2 ranks, 1 GPU" shared 1 "1 GPU"
    check "2 ranks, 3 allowed of 4 GPUs" shared 4 "2 GPUs" STARPU_NCUDA=3
    check "2 ranks, named GPUs" shared 4 "1 GPU" STARPU_WORKERS_CUDAID=2
else
    echo "skip  ranks: no MPI"
fi

# Memory: tiles of 35 MB of features on a card that may use 64 MiB, of which StarPU keeps 32 for small tiles.
"$STARLING" generate community "$T/wide" --vertices 600 --classes 4 --degree 8 --features 12000 --seed 1 >/dev/null
evicted() { # ARGUMENT ...
    SOFTWARE_GPU_COUNT=1
    trained all "$T/wide" --epochs 6 --tiles 4 --device cuda "$@"
    STARPU_LIMIT_CUDA_MEM=64
    export STARPU_LIMIT_CUDA_MEM
    trained little "$T/wide" --epochs 6 --tiles 4 --device cuda "$@"
    same all little
}
check "a graph larger than the card" evicted
check "a graph larger than the card, cuSPARSE" evicted --spmm cusparse

# Rows of 32 MB, which one sparse product meets: in parts, or, where a tile has them all, on the cores.
"$STARLING" generate community "$T/broad" --vertices 2000 --classes 4 --degree 8 --features 24 --seed 1 >/dev/null
broad() { # TILES NOTES
    STARPU_LIMIT_CUDA_MEM=64 SOFTWARE_GPU_COUNT=1
    export STARPU_LIMIT_CUDA_MEM
    exits 0 train "$T/broad" --hidden 4096 --product-order spmm --dropout 0 --tiles "$1" --epochs 2 --device cuda
    [ "$(grep -c 'is for the cores: a GPU has 64 MiB' "$T/err")" -eq "$2" ] || die "$(cat "$T/err")"
    sed -n 's/^  loss  *//p' "$T/out" >"$T/one"
    unset STARPU_LIMIT_CUDA_MEM
    exits 0 train "$T/broad" --hidden 4096 --product-order spmm --dropout 0 --tiles "$1" --epochs 2 --device cpu
    sed -n 's/^  loss  *//p' "$T/out" >"$T/two"
    [ -s "$T/one" ] && cmp "$T/one" "$T/two" || die "another loss than on the cores"
}
check "a matrix larger than the card" broad 8 0
check "a task larger than the card" broad 1 1

# Less than two of StarPU's pieces: no run that waits for ever.
too_small() {
    for mib in 20 40 63; do
        STARPU_LIMIT_CUDA_MEM=$mib SOFTWARE_GPU_COUNT=1 timeout -k 1 60 "$STARLING" train "$T/wide" --hidden 16 --epochs 2 --tiles 2 \
            --device cuda --quiet >"$T/out" 2>"$T/err" </dev/null
        status=$?
        [ $status -eq 2 ] || die "exit status $status with $mib MiB: $(cat "$T/err")"
        sentence "a GPU has $mib MiB for tiles of a rank" "$T/err"
    done
}
check "a card with next to no memory" too_small

# The library returns what a card refuses to a program that lives on.
no_room() {
    library=${top_builddir:-.}/tests/library
    [ -x "$library" ] || skip "no tests/library"
    SOFTWARE_GPU_MEMORY=24 SOFTWARE_GPU_COUNT=1 timeout -k 1 60 "$library" losses "$karate" epochs 2 device cuda >"$T/out" 2>"$T/err" </dev/null
    status=$?
    [ $status -eq 1 ] || die "exit status $status: $(cat "$T/err")"
    grep -q '^library: a GPU has no 32 MiB of memory for its tasks' "$T/err" || die "$(cat "$T/err")"
}
[ $software = no ] || check "a card without room to work in" no_room

counted() { # EPOCHS ARGUMENT ...
    epochs=$1
    shift
    rm -f "$T/counts"
    SOFTWARE_GPU_COUNTS=$T/counts
    export SOFTWARE_GPU_COUNTS
    trained counted "$T/wide" --epochs "$epochs" --tiles 4 --eval-every 100 --device cuda "$@"
    tr -d '{}" ' <"$T/counts" | tr , '\n' | tr : ' '
}
# Four epochs more: no memory is allocated, nothing waits for a device, features stay where they are.
steady() { # ARGUMENT ...
    SOFTWARE_GPU_COUNT=1
    counted 1 "$@" >"$T/first" # StarPU measures the bus when the number of GPUs has changed
    counted 3 "$@" >"$T/three"
    counted 7 "$@" >"$T/seven"
    paste "$T/three" "$T/seven" | awk '
        { more[$1] = $4 - $2 }
        END {
            for (name in more) print name, more[name]
            exit !(more["kernels"] > 0 && more["mallocs"] == 0 && more["frees"] == 0 && more["host_mallocs"] == 0 &&
                   more["synchronizations"] == 0 && more["bytes_to_device"] < 4096 && more["bytes_to_host"] < 4096)
        }' || die "epochs allocate, wait or copy"
    rm -f "$T/counts"
    STARPU_LIMIT_CUDA_MEM=64
    export STARPU_LIMIT_CUDA_MEM
    counted 3 "$@" >"$T/three"
    awk '$1 == "bytes_to_device" && $2 > 60000000 { found = 1 } END { exit !found }' "$T/three" || die "nothing was evicted"
}
[ $software = no ] || check "epochs that allocate, wait and copy nothing" steady
[ $software = no ] || check "the same with cuSPARSE" steady --spmm cusparse

finish
