#!/bin/sh
# Ranks do not change results: the same tile grid on 1, 2, 3 and 4 ranks gives the same bits. One line per case.
# More ranks than cores are slow: graphs are tiny and runs are short.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="memory unlike_widths"

# A vertex with half of the entries: its row is cut along its columns.
star() {
    awk 'BEGIN { for (v = 0; v < 9001; v++) if (v != 120) { print 120, v; if (v % 3) print v, 120 } }' |
        dataset "$T/star" 9001 3
}

three() {
    printf '0 1\n1 2\n2 1\n' | dataset "$T/three" 3 0
}

# ---- Cases ----

# What a rank receives of the others' rows in an epoch, summed over the ranks: CAGNET's formula for 1D, L 2 n f words per
# rank, of which a rank has its own part; a layer's f is its output's width, where the GEMM comes first.
words() {
    for n in 2 3; do
        train words-$n $n train "$T/directed" --epochs 3 --tiles 6 --layers 3 --hidden 8 --product-order gemm \
            --distribution 1d
        traffic words-$n rows_received | awk -v ranks=$n '
            { bytes = $1; formula = 4 * 2 * 61 * (8 + 8 + 3) * (ranks - 1)
              print ranks, "ranks received", bytes, "bytes; by the formula", formula
              exit !(bytes > 0.95 * formula && bytes < 1.05 * formula) }' ||
            die "other traffic than 1D's"
    done
}

# In every epoch of the log, on rank 0 with one worker: hidden <= communication <= the epoch, compute <= the epoch. On
# one rank nothing travels, on two something does.
fitting_times() { # RANKS OPTION ...
    n=$1
    shift
    train "times-$n" "$n" train "$T/directed" --epochs 12 --tiles 4 --hidden 20 --workers 1 "$@"
    grep '"event":"epoch"' log | tr '{,}' '\n' | tr -d '"' | awk -F: -v ranks="$n" '
        { f[$1] = $2 }
        $1 == "hidden_seconds" {
            epochs++
            hidden = f["hidden_seconds"]; travel = f["communication_seconds"]; all += travel
            compute = f["compute_seconds"]; most = f["seconds"] * (1 + 1e-9)
            if (!(0 <= hidden && hidden <= travel && travel <= most && 0 < compute && compute <= most)) {
                print "epoch", f["epoch"], f["seconds"], compute, travel, hidden
                bad = 1
            }
        }
        END { print epochs, "epochs,", all, "s"; exit bad || epochs != 12 || (all > 0) != (ranks > 1) }' ||
        die "$n ranks: impossible times"
    [ "$(tail -n 1 log | sed -n 's/.*"hidden_seconds":\[\([^]]*\).*/\1/p' | tr ',' '\n' | wc -l)" -eq "$n" ] ||
        die "not one time for each rank: $(tail -n 1 log)"
    [ "$(grep -c '^  communicating ' out)" -eq $((n > 1)) ] || die "$n ranks: $(cat out)"
}

times_of_an_epoch() {
    fitting_times 1 "$@"
    fitting_times 2 "$@"
}

own_grid() {
    train default-1 1 train "$T/directed" --epochs 30
    train default-2 2 train "$T/directed" --epochs 30
    near default-1 default-2 30
}

# The grid that 4 ranks choose has a tile per vertex.
tiny() {
    train three-1 1 train "$T/three" --epochs 10 --tiles 3
    train three-4 4 train "$T/three" --epochs 10 --distribution 1d
    results "$T/three-1/log" >"$T/one"
    results "$T/three-4/log" | diff "$T/one" - || die "other losses"
    same_tensors 115 "$T/three-1/ck" "$T/three-4/ck"
}

community() {
    "$STARLING" generate community "$T/community" --vertices 1500 --classes 4 --degree 12 --features 24 >"$T/out" || exit 1
    grid community 3 "$T/community" --tiles 16 --epochs 16 --dropout 0.5 --order random --workers 1
}

# Half the epochs on one rank, the others on three; predictions of two ranks.
handed_over() {
    train whole 1 train "$T/directed" --epochs 20 --tiles 5 --seed 3
    train parts 1 train "$T/directed" --epochs 10 --tiles 5 --seed 3
    train parts 3 train "$T/directed" --epochs 20 --tiles 5 --resume ck --distribution 1d
    same_tensors 211 "$T/whole/ck" ck
    run 1 predict ck "$T/directed" --tiles 5 --output p1.npy --embeddings h1.npy || die "$(cat err)"
    run 2 predict ck "$T/directed" --tiles 5 --output p2.npy --embeddings h2.npy || die "$(cat err)"
    cmp p1.npy p2.npy && cmp h1.npy h2.npy || die "other predictions"
}

large_tiles() {
    "$STARLING" generate community "$T/large" --vertices 30000 --degree 4 --classes 3 --features 5 --seed 1 --quiet || exit 1
    grid large 3 "$T/large" --tiles 6 --epochs 12 --layers 3
}

# With own tiles first, the sums' order follows from the cut: on as many ranks the same bits with other workers, policies
# and messages, on one rank to 1e-4.
own_first() { # NAME PARAMETERS RANKS EPOCHS OPTION ...
    name=$1 parameters=$2 ranks=$3 epochs=$4
    shift 4
    set -- "$@" --epochs "$epochs" --distribution 1d
    train "$name-tiles" 1 train "$@"
    set -- "$@" --sum-order own-first
    train "$name-own" "$ranks" train "$@" --workers 1 --scheduler eager
    near "$name-tiles" "$name-own" "$epochs"
    tail -c $((3 * 4 * parameters)) "$T/$name-tiles/ck" >"$T/one"
    tail -c $((3 * 4 * parameters)) "$T/$name-own/ck" | cmp -s "$T/one" - && die "no other order"
    for other in "--workers 3 --scheduler lws --quiet" "--workers 2 --scheduler prio --no-overlap" "--workers 1 --broadcast direct"; do
        # shellcheck disable=SC2086
        train "$name-other" "$ranks" train "$@" $other
        same_tensors "$parameters" "$T/$name-own/ck" "$T/$name-other/ck"
        losses "$name-own" >"$T/one"
        losses "$name-other" | cmp "$T/one" - || die "other losses with $other"
    done
}

check "a directed, weighted dataset out of an edge list" directed
check "a star" star
check "a dataset of three vertices" three
check "karate: 1, 2, 3 and 4 ranks, the same bits" grid karate "2 3 4" "$karate" --tiles 5 --epochs 30 --dropout 0.5
check "directed, 3 layers, early stopping: 1, 3 and 4 ranks, the same bits" \
    grid directed "3 4" "$T/directed" --tiles 5 --epochs 15 --layers 3 --hidden 7 --patience 4 --norm row
check "directed, bfloat16: 1 and 3 ranks, the same bits" \
    grid narrow 3 "$T/directed" --tiles 7 --epochs 15 --layers 3 --hidden 20 --precision bf16
check "a star, hub's row in pieces: 1, 2 and 3 ranks, the same bits" \
    grid star "2 3" "$T/star" --tiles 9 --epochs 12 --layers 3 --hidden 7 --product-order spmm
check "a generated graph in random order: 1 and 3 ranks, the same bits" community
check "directed: 1 and 8 ranks, the same bits" \
    grid eight 8 "$T/directed" --tiles 11 --epochs 16 --layers 3 --hidden 20 --workers 1
check "tiles over 1 MiB, which travel two at a time: 1 and 3 ranks, the same bits" large_tiles
check "own tiles first: 3 ranks, the same bits in every run" own_first own 94 3 10 "$T/directed" --tiles 13 --hidden 7
check "own tiles first, hub's row in pieces: 3 ranks, the same bits in every run" own_first hub 66 3 4 "$T/star" --tiles 9 \
    --hidden 9
check "the same without overlap" grid slow 3 "$T/directed" --tiles 7 --epochs 15 --layers 3 --no-overlap
check "a limit of the gradient's norm: 1 and 3 ranks, the same bits" \
    grid clipped 3 "$T/directed" --tiles 7 --epochs 15 --layers 3 --optimizer sgd --lr 0.5 --clip-norm 0.05
check "numbers that are not finite: one sentence" \
    refused 'not finite (expected a smaller --lr than 1e+06, or --clip-norm)' train "$karate" --lr 1e6 --optimizer sgd
check "words moved in 1D agree with the formula within 5 %" words
for overlap in "" --no-overlap; do
    check "times of an epoch fit one another on 1 and 2 ranks $overlap" times_of_an_epoch $overlap
done
check "2 ranks, a grid of their own: the same to 1e-4" own_grid
check "3 vertices on 4 ranks" tiny
check "resumed and applied on other numbers of ranks" handed_over
# A rank on one core, the other on all: their default grids must still be one, which on one rank gives the same bits. The
# rank on one core has fewer tiles, and receives more rows of the other.
uneven() {
    command -v taskset >/dev/null || skip "no taskset"
    "$MPIRUN" --version 2>&1 | grep -q 'Open MPI' || skip "not Open MPI"
    core=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
    mkdir -p "$T/uneven-2"
    cd "$T/uneven-2" || exit 1
    "$STARLING" generate community "$T/g" --vertices 6000 --classes 3 --degree 20 --features 32 --seed 2 >out || exit 1
    set -- train "$T/g" --epochs 20 --distribution 1d --log log --checkpoint ck
    timeout 120 "$MPIRUN" --bind-to none -n 1 taskset -c "$core" "$STARLING" "$@" : -n 1 "$STARLING" "$@" >out 2>err </dev/null ||
        die "exit status $?: $(cat err)"
    tiles=$(head -n 1 log | sed -n 's/.*"tiles":\([0-9]*\),"block_columns".*/\1/p')
    [ -n "$tiles" ] || die "no tiles in the log: $(head -n 1 log)"
    train uneven-1 1 train "$T/g" --epochs 20 --distribution 1d --tiles "$tiles"
    results "$T/uneven-1/log" >"$T/one"
    results "$T/uneven-2/log" >"$T/two"
    [ "$(wc -l <"$T/one")" -gt 40 ] || die "an empty log"
    diff "$T/one" "$T/two" || die "other losses than on one rank with $tiles tiles"
    [ "$(getconf _NPROCESSORS_ONLN)" -gt 1 ] || skip "one core: no ranks with other numbers of cores"
    sed -n 's/.*"rows_received":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p' "$T/uneven-2/log" | tail -n 1 | awk '
        { print $1, "and", $2, "bytes of rows received"; exit !($1 > 1.2 * $2) }' || die "work is not shared by cores"
}

# The bytes of dense matrices that a log's plan has on a rank are at most so many matrices of so many bytes: an
# L-layer network has L + 3 of its widest shape (MG-GCN, section 4.2), those that travel among them.
matrices() { # LOG MATRICES BYTES
    dense=0
    for kind in activations work received; do
        dense=$((dense + $(figure head "$1" $kind)))
    done
    [ "$dense" -gt 0 ] && [ "$dense" -le $(($2 * $3)) ] || die "$dense bytes are more than $2 matrices of $3 bytes"
}

# On 4 ranks what was planned is what was taken, pages that are kept for later among it. Parts are not quite even. On 8,
# each has one tile, and no more of them travel at once.
memory() {
    cd "$T" || exit 1
    "$STARLING" generate community deep --vertices 32000 --classes 4 --degree 10 --features 96 >out || exit 1
    taken_as_planned --layers 8 --hidden 256 --distribution 1d
    matrices deep.jsonl 11 $((8400 * 272 * 4)) # rows of 1 KiB have a cache line behind them
    taken_as_planned --layers 2 --hidden 16 --dropout 0 --distribution 1d
    run 8 train deep --epochs 1 --workers 1 --layers 8 --hidden 96 --distribution 1d --log eight.jsonl --quiet ||
        die "$(cat err)"
    matrices eight.jsonl 11 $((4200 * 96 * 4))
    run 5 train deep --epochs 2 --tiles 10 --workers 1 --layers 3 --hidden 192 --distribution 1d --model sage --aggregator max \
        --log max.jsonl --quiet || die "$(cat err)"
    as_planned max.jsonl
    run 2 train deep --layers 12 --hidden 64 --plan || die "$(cat err)"
    grep -q '^  total  *[1-9]' out || die "no total: $(cat out)"
}

# Widths that differ: features, hidden layers and classes share places. GraphSAGE has one matrix more. Of the L + 3
# matrices two are on their way, in four stages of whole pages.
unlike_widths() {
    cd "$T" || exit 1
    page=2097152
    "$STARLING" generate community wide --vertices 39000 --classes 172 --degree 10 --features 128 >out || exit 1
    for case in "1 6 208 --layers 3 --hidden 208" "4 6 208 --layers 3 --hidden 208" \
        "4 5 176 --layers 2 --hidden 160" "2 7 176 --layers 4 --hidden 64" "4 7 208 --layers 3 --hidden 208 --model sage"; do
        # shellcheck disable=SC2086
        set -- $case
        ranks=$1 most=$2 matrix=$((39000 / $1 * $3 * 4 * 102 / 100))
        shift 3
        run "$ranks" train wide --epochs 2 --workers 1 --product-order gemm --distribution 1d --log wide.jsonl --quiet "$@" ||
            die "$(cat err)"
        least=95 as_planned wide.jsonl "$case"
        stage=$(((matrix / 2 + page - 1) / page * page))
        matrices wide.jsonl 1 $(((most - 2) * matrix + 4 * stage))
    done
}

fifty_layers() {
    cd "$T" || exit 1
    "$STARLING" generate community fifty --vertices 8000 --classes 16 --degree 10 --features 16 >out || exit 1
    run 2 train fifty --distribution 1d --epochs 2 --workers 1 --tiles 4 --layers 50 --hidden 16 --log fifty.jsonl --quiet || die "$(cat err)"
    matrices fifty.jsonl 53 $((4100 * 16 * 4))
}

# All trainings of a bench share one start of MPI.
bench_tiles() {
    cd "$T" || exit 1
    run 2 bench epoch "$T/directed" --epochs 6 --repetitions 2 --workers 1 --tiles-list 0,5,8 --json bench.json ||
        die "exit status $?: $(cat err)"
    [ ! -s err ] && grep -q 'hidden %' out || die "$(cat out err)"
    tr -d '", ' <bench.json | awk -F: '
        { f[$1] = $2 }
        $1 == "chosen_by" { chosen = chosen " " $2 }
        $1 == "hidden_share_high" {
            rows++
            tiles = tiles " " f["tiles"]
            if (!(f["ranks"] == 2 && 0 <= f["hidden_seconds"] && f["hidden_seconds"] <= f["communication_seconds"] &&
                  0 <= f["hidden_share"] && f["hidden_share"] <= 1 && f["rank_imbalance"] >= 1 &&
                  f["epoch_seconds_low"] <= f["epoch_seconds"] && f["planned_bytes"] > 0 && f["tile_bytes"] > 0))
                bad = 1
        }
        END { print rows, chosen, tiles; exit bad || rows != 3 || chosen != " train list list" || tiles !~ / 5 8$/ }' ||
        die "$(cat bench.json)"
}

bench_schedulers() {
    cd "$T" || exit 1
    run 2 bench schedulers "$karate" --epochs 6 --policies lws,eager --workers-list 1 --repetitions 1 ||
        die "exit status $?: $(cat err)"
    [ ! -s err ] && [ "$(grep -c ' done$' out)" -eq 2 ] || die "$(cat out err)"
    ! grep -q 'losses' out || die "$(cat out)"
}

check "memory: as planned, and L + 3 matrices" memory
check "memory: features, hidden layers and classes of different widths" unlike_widths
check "50 layers on 2 ranks: L + 3 matrices" fifty_layers
check "ranks with different numbers of cores: one grid, the same bits, work by cores" uneven
check "a dataset that is not there: one sentence" refused "$T/none" train "$T/none"
check "a wrong option: one sentence" refused --hidden train "$karate" --hidden 0
check "bench epoch on 2 ranks" bench_tiles
# Ranks of one worker take tasks from a single queue, others have one for each worker; what the user says wins.
usual_scheduler() {
    cd "$T" || exit 1
    for case in "2 1 eager" "2 2 lws" "1 1 lws"; do
        # shellcheck disable=SC2086
        set -- $case
        (unset STARPU_SCHED && run "$1" train "$karate" --epochs 2 --workers "$2") || die "$(cat err)"
        grep -q "x $2 workers\{0,1\}, .* scheduler $3\$" out || die "not $3 on $1 ranks x $2: $(cat out)"
    done
    run 2 train "$karate" --epochs 2 --workers 1 --scheduler lws || die "$(cat err)"
    grep -q "scheduler lws\$" out || die "not lws: $(cat out)"
    (unset STARPU_SCHED && run 2 train "$karate" --epochs 2 --workers 1 --sum-order own-first) || die "$(cat err)"
    grep -q "scheduler prio\$" out || die "not prio with own-first: $(cat out)"
}
check "the policy of one worker and of two" usual_scheduler
check "bench schedulers on 2 ranks" bench_schedulers
check "bench: what cannot run on ranks, one sentence" refused 'without mpirun' bench machine
check "bench epoch: a dataset that is not there" refused "$T/none" bench epoch "$T/none" --repetitions 1
check "bench epoch: a list in the place of --tiles" refused --tiles-list bench epoch "$karate" --tiles 4
check "bench epoch: a generated graph" refused "starling generate like" bench epoch --like arxiv
finish
