#!/bin/sh
# Groups of ranks that preload what their vertices depend on, and batches: losses of one rank where training is exact, words
# that cross between groups, and refusals. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="exact alike exact_some trains resumes fewer within messages_plan batches_plan planned columns_planned empty automatic"
alike="$alike inside_choice inside_choice_of_many room_for_metis"
XDG_CACHE_HOME=$T/cache
export XDG_CACHE_HOME

data() {
    directed
    sparse
    "$STARLING" generate community "$T/small" --vertices 400 --classes 4 --degree 6 --features 24 --seed 3 >"$T/out" &&
        "$STARLING" generate community "$T/strong" --vertices 3000 --classes 12 --degree 5 --features 16 --homophily 0.99 \
            --seed 5 >"$T/out" || die "$(cat "$T/out")"
}

# alike NAME EPOCHS "RANKS:OPTIONS ..." OPTION ...: the same losses with all of these; _ stands for a space.
alike() {
    name=$1 epochs=$2 all=$3
    shift 3
    for groups in $all; do
        ranks=${groups%%:*} options=$(echo "${groups#*:}" | tr _ ' ')
        # shellcheck disable=SC2086
        train "$name-$groups" "$ranks" train "$@" --epochs "$epochs" $options
        near "$name-${all%% *}" "$name-$groups" "$epochs"
    done
}

# exact NAME EPOCHS "RANKS:OPTIONS ..." OPTION ...: the same losses on one rank and on these.
exact() {
    name=$1 epochs=$2 all=$3
    shift 3
    alike "$name" "$epochs" "1: $all" "$@"
}

# As exact, of a list that several cases in a row have, and at which they take turns.
exact_some() {
    name=$1 epochs=$2 long=2
    some $3
    shift 3
    exact "$name" "$epochs" "$all" "$@"
}

# One batch is the whole graph: the same bits.
one_batch() {
    train one-full 1 train "$T/small" --epochs 12 --dropout 0.3 "$@"
    train one-co 1 train "$T/small" --epochs 12 --dropout 0.3 --batches co:1 "$@"
    near one-full one-co 12
}

# Between groups only gradients travel, and the sums of metrics; with one layer more, more of them.
crossing() {
    for layers in 2 5; do
        train "crossing-$layers" 4 train "$T/strong" --layers $layers --hidden 16 --epochs 3 --eval-every 100 --groups 2x2
        sent=$(traffic "crossing-$layers" bytes_sent)
        parameters=$((16 * 16 + 16 + (layers - 2) * (16 * 16 + 16) + 16 * 12 + 12))
        # To group 0 and back, and on to the other rank of each group; metrics of 16 doubles likewise.
        between=$((4 * parameters * (1 + 1 + 2) + 128 * (1 + 1 + 2)))
        echo "$layers layers: $sent bytes sent by the groups' views of all ranks, $between of gradients and metrics"
        [ "$sent" -eq "$between" ] || die "other words"
        sent=$(of_groups "crossing-$layers" between bytes) between=$(((4 * parameters + 128) * 2))
        echo "$layers layers: $sent bytes between groups, $between of gradients and metrics"
        [ "$sent" -eq "$between" ] && [ "$(of_groups "crossing-$layers" between messages)" -eq $((2 * layers + 2)) ] ||
            die "other words between groups"
        times_fit "crossing-$layers" 4
    done
}

# Messages or bytes of an epoch, between groups or inside them, summed over the ranks; of a vertex-cut, over the first ones of
# groups of two.
of_groups() { # FOLDER between|inside KIND [DISTRIBUTION]
    tail -n 1 "$T/$1/log" | sed -n "s/.*\"$2\":{[^}]*\"$3\":\[\([^]]*\).*/\1/p" | tr ',' '\n' |
        awk -v kind="$4" 'kind != "vertex-cut" || NR % 2 { sum += $1 } END { print sum }'
}

# Messages between groups travel for a part of the time; a worker computes or waits.
times_fit() { # FOLDER RANKS
    tail -n 1 "$T/$1/log" | tr -d '"' | sed 's/.*time_per_epoch//; s/[]{}]//g' | tr '[' ',' | tr -d ':' | awk -F, -v ranks="$2" '
        { for (i = 1; i <= NF; i++) if ($i ~ /_seconds/) { name = $i; r = 0 } else f[name, ++r] = $i }
        END { for (r = 1; r <= ranks; r++) {
                  all = f["communication_seconds", r]; between = f["between_seconds", r]; sum += between
                  if (!(0 <= between && between <= all && f["waiting_seconds", r] >= 0)) bad = 1
              }
              print sum, "s between groups"; exit bad || !(sum > 0) }' || die "times: $(tail -n 1 "$T/$1/log")"
}

# A path of ten vertices in two parts: with two layers, a group preloads two vertices. The nearer one has two neighbours that
# are there; the other one is an input alone.
sizes() {
    awk 'BEGIN { for (v = 0; v < 9; v++) { print v, v + 1; print v + 1, v } }' | dataset "$T/path" 10 3
    npy "$T/path.npy" '<i4' "(10,)" \
        "$(awk 'BEGIN { for (v = 0; v < 10; v++) printf "\\%03o\\000\\000\\000", (v > 4) }')"
    train sizes 2 train "$T/path" --layers 2 --hidden 4 --epochs 1 --groups 2x1 --partition "$T/path.npy"
    grep -q '^2 groups, 1 step per epoch; outer vertices / inner ones: 0.400, redundant share of the adjacency: 0.182$' out ||
        die "$(cat out)"
    grep -q '^  between groups  *0[.0-9]* MB in 6 messages per epoch, ' out || die "$(cat out)"
    head -n 1 log | grep -q '"count":2,"ranks":\[1,1\],"steps_per_epoch":1,"batches":\[1,1\],"inner_vertices":\[5,5\],"outer_vertices":\[2,2\],"adjacency_entries":\[11,11\],"preloaded_share":\[0.4[0-9]*,0.4[0-9]*\],"redundant_share":\[0.1818' ||
        die "$(head -n 1 log)"
    for h in 1 2; do
        train sizes-$h 2 train "$T/path" --layers 4 --hidden 4 --epochs 1 --groups 2x1 --partition "$T/path.npy" --preload-hops $h
        head -n 1 log | grep -q "\"outer_vertices\":\[$h,$h\]" || die "$(head -n 1 log)"
    done
    # Where the first layer's sums are made once, from the whole graph, a group has one hop less.
    for case in 1:all:0:0 2:all:1:9 3:all:2:11 4:1:1:9; do
        IFS=: read -r layers hops outer entries <<EOF
$case
EOF
        for model in gcn sage; do
            train sizes-cached 2 train "$T/path" --model $model --layers "$layers" --hidden 4 --epochs 1 --groups 2x1 \
                --partition "$T/path.npy" --input-dropout 0 --cache-aggregate --preload-hops "$hops"
            head -n 1 log | grep -q "\"outer_vertices\":\[$outer,$outer\],\"adjacency_entries\":\[$entries,$entries\]," ||
                die "$model, $case: $(head -n 1 log)"
        done
    done
    train sizes-not-cached 2 train "$T/path" --layers 2 --hidden 4 --epochs 1 --groups 2x1 --partition "$T/path.npy" \
        --input-dropout 0 --no-cache-aggregate
    head -n 1 log | grep -q '"outer_vertices":\[2,2\],"adjacency_entries":\[11,11\],' || die "$(head -n 1 log)"
    train sizes-batches 1 train "$T/small" --hidden 4 --epochs 2 --batches clusters:5,2
    head -n 1 log | grep -q '"count":1,"ranks":\[1\],"steps_per_epoch":3,"batches":\[2\],.*"outer_vertices":\[0\]' ||
        die "$(head -n 1 log)"
}

# Rows of other groups that come late: the first 3 epochs are exact. Then rows travel in every third epoch, one way.
late() {
    set -- "$T/strong" --layers 3 --hidden 16 --eval-every 100
    train late-1 1 train "$@" --epochs 3
    for epochs in 3 12 13; do
        train late-$epochs 2 train "$@" --epochs $epochs --groups 2x1 --preload-hops 1 --delay cd-3
    done
    near late-1 late-3 3
    for hops in 1 all; do
        train late-exact-$hops 2 train "$@" --epochs 2 --groups 2x1 --preload-hops $hops
    done
    sums=$(traffic late-exact-all bytes_sent) both=$(traffic late-exact-1 bytes_sent)
    late=$(traffic late-12 bytes_sent)
    echo "$sums bytes of sums, $both with rows both ways; late: $late, the mean of three epochs"
    [ "$both" -gt "$sums" ] && [ "$(traffic late-13 bytes_sent)" -eq "$late" ] || die "other words"
    # Rows travel one way, in one epoch of three. A mean is a whole number.
    apart=$((6 * (late - sums) - (both - sums)))
    [ $apart -ge -3 ] && [ $apart -le 3 ] || die "other words: $apart"
}

# Parts that all ranks find together.
together() {
    mkdir -p "$T/together-try"
    cd "$T/together-try" || exit 1
    run 3 train "$T/small" --epochs 1 --groups 3x1 --partition ptscotch || {
        grep -q "built without PT-Scotch" err && skip "built without PT-Scotch"
        die "$(cat err)"
    }
    exact together 4 "3:--groups_3x1_--partition_ptscotch" "$T/small" --hidden 8
    exact together-directed 4 "2:--groups_2x1_--partition_ptscotch 3:--distribution_halo_--partition_ptscotch" "$T/directed" \
        --hidden 8
    # Few edges are cut: about as few rows travel as with METIS' parts.
    for parts in ptscotch metis; do
        [ $parts = metis ] && file= || file="--partition $parts"
        # shellcheck disable=SC2086
        train together-$parts 3 train "$T/strong" --hidden 16 --epochs 2 --distribution halo $file
    done
    ours=$(traffic together-ptscotch rows_received) metis=$(traffic together-metis rows_received)
    echo "$ours bytes of rows with PT-Scotch's parts, $metis with METIS'"
    [ "$ours" -gt 0 ] && [ "$ours" -lt $((metis * 3 / 2)) ] || die "poor parts"
}

# Where a limit of address space leaves rank 0 no room for METIS, all ranks cut the graph with PT-Scotch, and train.
room_for_metis() {
    (ulimit -v 4000000 && timeout 20 "$STARLING" version) >/dev/null 2>&1 || skip "no ulimit -v here"
    cd "$T" || exit 1
    run 3 train small --epochs 1 --groups 3x1 --partition ptscotch || skip "built without PT-Scotch"
    "$STARLING" generate community many-edges --vertices 20000 --degree 60 --classes 4 --features 4 --seed 3 >out ||
        die "$(cat out)"
    set -- many-edges --hidden 4 --layers 1 --epochs 1 --groups 2x1 --workers 1 --log log
    entries='"adjacency_entries":\[[^]]*\]'
    run 2 train "$@" || die "$(cat err)"
    metis=$(head -n 1 log | grep -oE "$entries") parts=$metis limit=850000
    while [ "$parts" = "$metis" ]; do
        limit=$((limit - 50000))
        [ $limit -ge 400000 ] || die "METIS' parts whatever the limit"
        (ulimit -v $limit && run 2 train "$@") || die "$limit kB: $(cat err)"
        parts=$(head -n 1 log | grep -oE "$entries")
        echo "$limit kB: $parts"
    done
    [ -n "$metis" ] && [ $limit -lt 800000 ] || die "no METIS with room for it"
}

# Flops of operations in 4 training steps of rank 0: what a run of 6 epochs has more than a run of 2, which is evaluated as
# often.
flops() { # NAME OPERATION
    for epochs in 2 6; do
        grep -oE "\"name\":\"$2[^}]*" "$T/$1-$epochs/log" | sed 's/.*"flops"://' | awk '{ sum += $1 } END { print sum }'
    done | paste -s | awk '{ print $2 - $1 }'
}

# Layers compute only rows that later layers read: the loss is of inner vertices, half of the graph; products take fewer
# rows than the first layer's dropout, which takes all rows of the group, once or twice.
fewer() { # NAME OPTION ...
    name=$1
    shift
    for epochs in 2 6; do
        train "$name-one-$epochs" 1 train "$T/strong" "$@" --epochs $epochs --eval-every 100 --profile
        train "$name-two-$epochs" 2 train "$T/strong" "$@" --epochs $epochs --eval-every 100 --profile --groups 2x1 --tiles 20
    done
    for operation in softmax_loss gemm dropout; do
        echo "$operation $(flops "$name-one" $operation) $(flops "$name-two" $operation)"
    done >"$T/flops"
    awk '{ print; share[$1] = $3 / $2; while (share[$1] > 1) share[$1] /= 2; print "  share", share[$1] }
        END { exit !(share["softmax_loss"] < 0.55 && share["gemm"] < 0.85 * share["dropout"] && share["dropout"] <= 1) }' \
        "$T/flops" || die "not fewer"
}

# Each rank of a group has about its share of the inner vertices, whose rows alone have a loss: a quarter on four ranks.
shares() { # DISTRIBUTION
    for epochs in 2 6; do
        [ -e "$T/shares-one-$epochs/log" ] ||
            train "shares-one-$epochs" 1 train "$T/strong" --hidden 8 --epochs $epochs --eval-every 100 --profile --tiles 60
        train "shares-$1-$epochs" 4 train "$T/strong" --hidden 8 --epochs $epochs --eval-every 100 --profile --tiles 60 \
            --groups 2x2 --distribution "$1"
    done
    echo "$(flops shares-one softmax_loss) $(flops "shares-$1" softmax_loss)" |
        awk '{ print; exit !($2 > 0.2 * $1 && $2 < 0.3 * $1) }' || die "another share"
}

# Two paths of 20 vertices, without an edge between their vertices 11 and with it. A group has ten vertices of both, and a
# path on each rank. The edge is two hops from the first group's own vertices: the first layer reads rows of this hop and sends
# gradients back, the second layer reads such rows. It is the second group's own, for all three layers, forward and back. Both
# ends of the edge travel, three numbers each: 9 times two rows. With a vertex-cut, one end has a clone on the other rank, and
# a row travels both ways: for the first group forward and back in one layer, for the second in three. Of these 8 times the
# first ranks of both groups send 8 rows. They send no sums of gradients, whose messages follow from the clones.
idle_rows() { # DISTRIBUTION
    npy "$T/ladder.npy" '<i4' "(40,)" \
        "$(awk 'BEGIN { for (v = 0; v < 40; v++) printf "\\%03o\\000\\000\\000", (v % 20 > 9) }')"
    for edges in 0 1; do
        awk -v edges=$edges 'BEGIN { for (v = 0; v < 39; v++) if (v != 19) { print v, v + 1; print v + 1, v }
            if (edges) { print 11, 31; print 31, 11 } }' | dataset "$T/ladder-$1-$edges" 40 3
        train "idle-rows-$edges" 4 train "$T/ladder-$1-$edges" --layers 3 --hidden 3 --product-order gemm --tiles 40 \
            --no-cache-aggregate --distribution "$1" --epochs 2 --eval-every 100 --groups 2x2 --partition "$T/ladder.npy"
    done
    rows=18
    [ "$1" != vertex-cut ] || rows=8
    bytes=$(($(of_groups idle-rows-1 inside bytes "$1") - $(of_groups idle-rows-0 inside bytes "$1")))
    echo "$bytes bytes of rows and results"
    [ "$bytes" -eq $((rows * 3 * 4)) ] || die "other rows"
}

trains() { # FOLDER RANKS OPTION ...: the loss falls, and the run again has the same bits
    runs=$1 on=$2
    shift 2
    for again in a b; do
        train "$runs-$again" "$on" train "$@" --epochs 12 --eval-every 4
    done
    cmp "$T/$runs-a/ck" "$T/$runs-b/ck" || die "other parameters when run again"
    losses "$runs-a" | awk 'NR == 1 { first = $1 } { last = $1 } END { print first, last; exit !(last < 0.9 * first) }' ||
        die "the loss does not fall"
}

# A run that is stopped and goes on has the same bits.
resumes() { # FOLDER RANKS OPTION ...
    runs=$1 on=$2
    shift 2
    train "$runs-once" "$on" train "$@" --epochs 9
    mkdir -p "$T/$runs-parts"
    cd "$T/$runs-parts" || exit 1
    run "$on" train "$@" --epochs 9 --stop-after 4 --checkpoint ck || die "$(cat err)"
    run "$on" train "$1" --resume ck --checkpoint ck2 --epochs 9 || die "$(cat err)"
    tail -c 2000 ck2 >"$T/one"
    tail -c 2000 "$T/$runs-once/ck" | cmp - "$T/one" || die "other parameters"
}

# sampled FOLDER OPTION ...: two groups of a graph with hubs, some of whose neighbours have no other.
sampled() {
    folder=$1
    shift
    train "$folder" 2 train "$T/dense" --hidden 4 --epochs 3 --groups 2x1 "$@"
}

# A sample is of one hop and 15 neighbours unless options say else. Neither option: exact.
usual_sample() {
    "$STARLING" generate rmat "$T/dense" --scale 9 --edge-factor 8 --features 8 --classes 4 --seed 2 >"$T/out" ||
        die "$(cat "$T/out")"
    sampled both --max-hop 1 --fanout 15
    sampled hop --max-hop 1
    sampled fanout --fanout 15
    sampled neither
    sampled all --max-hop all
    sampled logged --max-hop all --fanout 15 # as logs of earlier programs have it
    sampled fewer --fanout 3
    sampled fewer-both --max-hop 1 --fanout 3
    for pair in both:hop both:fanout neither:all neither:logged fewer:fewer-both; do
        losses "${pair%:*}" >"$T/one"
        losses "${pair#*:}" | diff "$T/one" - || die "other losses: $pair"
    done
    for pair in both:neither both:fewer; do
        losses "${pair%:*}" >"$T/one"
        losses "${pair#*:}" | cmp -s "$T/one" - && die "the same losses: $pair"
    done
    for folder in both neither; do
        head -n 1 "$T/$folder/log" | sed -n 's/.*"outer_vertices":\[\([0-9]*\),.*/\1/p'
    done | tr '\n' ' ' | awk '{ print; exit !(NF == 2 && 0 < $1 && $1 < $2) }' || die "no sample"
}

# Rows of gradients may lie further apart than those of parameters.
wide() {
    exact wide 3 "2:--groups_2x1 4:--groups_2x2" "$T/small" --hidden 256
    exact wide-odd 3 "2:--groups_2x1" "$T/small" --hidden 100 --model sage
    exact wide-norm 3 "2:--groups_2x1" "$T/small" --model resgcn --layers 2 --hidden 128 --block-norm batch
}

# A group, or a set, may have no vertex at all.
empty() {
    "$STARLING" generate community "$T/tiny" --vertices 2 --classes 2 --degree 1 --features 4 --seed 1 >"$T/out" ||
        die "$(cat "$T/out")"
    exact empty 4 "3:--groups_3x1 4:--groups_2x2 3:--groups_3x1_--preload-hops_1 3:--groups_3x1_--max-hop_5_--fanout_0" \
        "$T/tiny" --layers 3 --hidden 8
    exact empty-cut 4 "3:--groups_3x1_--distribution_vertex-cut 4:--groups_2x2_--distribution_vertex-cut" "$T/tiny" --layers 3 \
        --hidden 8
    alike empty-batches 4 "3:--groups_3x1_--batches_co:2 3:--groups_3x1_--batches_co:2_--distribution_vertex-cut" "$T/tiny" \
        --layers 3 --hidden 8
    alike empty-clusters 4 "2:--groups_2x1 4:--groups_2x2_--distribution_vertex-cut" "$T/tiny" --layers 2 --hidden 8 \
        --batches clusters:2,2
    exact empty-columns 4 "3:--groups_3x1" "$T/tiny" --model resgcn --layers 2 --hidden 8 --block-norm batch
    # No vertex of the second group trains; the last group has one vertex.
    npy "$T/small.npy" '<i4' "(400,)" \
        "$(awk 'BEGIN { for (v = 0; v < 400; v++) printf "\\%03o\\000\\000\\000", (v > 250) + (v == 399) }')"
    cp -r "$T/small" "$T/untrained"
    split "$T/untrained/train_idx.npy" 0 5 250
    split "$T/untrained/val_idx.npy" 6 7 400
    split "$T/untrained/test_idx.npy" 8 9 400
    for graph in untrained small; do
        train one-group 1 train "$T/$graph" --layers 3 --hidden 8 --epochs 4
        set -- "$T/$graph" --layers 3 --hidden 8 --epochs 4 --groups 3x1 --partition "$T/small.npy"
        for how in "--distribution halo" "--distribution vertex-cut" "--preload-hops 1"; do
            # shellcheck disable=SC2086
            train three-groups 3 train "$@" $how
            near one-group three-groups 4
        done
        train halos 3 train "$@" --batches co:4 --max-hop 1
        train cuts 3 train "$@" --batches co:4 --max-hop 1 --distribution vertex-cut
        near halos cuts 4
    done
    trains many-sets 1 "$T/small" --hidden 8 --batches co:400
    alike many-sets-cut 3 "1: 2:--distribution_vertex-cut" "$T/small" --hidden 8 --batches co:80 --order none
    train many-clusters 2 train "$T/tiny" --hidden 8 --epochs 3 --groups 2x1 --batches clusters:2,2
}

# Batches are not for predictions, whatever drew the splits.
predicts() {
    train predicts 2 train "$T/small" --hidden 8 --epochs 3 --groups 2x1 --batches co:2 --max-hop 1 --split 20/30/rest
    run 1 predict ck "$T/small" --logits logits.npy --embeddings embeddings.npy || die "$(cat err)"
    accuracy=$(sed -n 's/.*"event":"end".*"test_accuracy":\([0-9.]*\).*/\1/p' log)
    awk -v test="$accuracy" '{ d = $NF - test; exit !(d * d < 1e-8) }' out || die "$(cat out), after $accuracy"
}

# What training takes is what was planned: the whole graph, all batches, shared places, sums of groups and copies.
planned() { # HOMOPHILY LAYERS "RANKS:OPTIONS ..."; _ stands for a space
    layers=$2 runs=$3
    cd "$T" || exit 1
    "$STARLING" generate community "wide-$1" --vertices 8000 --classes 20 --degree 6 --features 32 --homophily "$1" \
        --seed 5 >out || die "$(cat out)"
    graph=wide-$1
    for run in $runs; do
        ranks=${run%%:*} options=$(echo "${run#*:}" | tr _ ' ')
        set -- "$graph" --layers "$layers" --hidden 192 --epochs 2 --tiles 8 --workers 1
        # shellcheck disable=SC2086
        run "$ranks" train "$@" --log log --quiet $options || die "$(cat err)"
        as_planned log "$options"
        total=$(figure head log total)
        # shellcheck disable=SC2086
        run "$ranks" train "$@" --plan $options || die "$(cat err)"
        [ "$(awk '$1 == "total" { print $2 }' out)" = "$(awk "BEGIN { printf \"%.1f\", $total / 1048576 }")" ] ||
            die "the log has $total bytes, --plan $(cat out): $options"
    done
    rm -r "$graph"
}

# Vertices of many edges: a group's copies have clones on both of its ranks.
copies_with_leaves() {
    "$STARLING" generate community "$T/leaves" --vertices 300 --classes 4 --degree 16 --features 8 --homophily 0.5 --seed 4 \
        >"$T/out" || die "$(cat "$T/out")"
    exact refreshed-leaves 4 "4:--groups_2x2_--preload-hops_1_--distribution_vertex-cut 4:--groups_2x2_--preload-hops_2_--distribution_vertex-cut" \
        "$T/leaves" --layers 4 --hidden 11 --dropout 0.3
}

# The plan of a grid has messages of rows that no layer reads, with copies or without.
columns_planned() {
    least=85
    planned 0.7 3 "4:--groups_2x2_--grid_1x2x1 4:--groups_2x2_--preload-hops_1_--grid_1x2x1"
}

# chosen KB: the number of batches that co:auto takes under a limit of the address space, in $R.
chosen() {
    (ulimit -v "$1" && run 1 train far --layers 12 --hidden 192 --workers 1 --recompute none --epochs 1 --max-hop 1 \
        --batches co:auto --log log --checkpoint ck) || die "$1 kB: $(cat out err)"
    R=$(head -n 1 log | sed -n 's/.*"batches":"co:\([0-9]*\)".*/\1/p')
    peak=$(figure tail log peak_memory_bytes)
    echo "$1 kB: co:$R, $(figure head log total) bytes planned, $(figure tail log tile_bytes) taken, $peak with all else"
    [ -n "$R" ] || die "$(head -n 1 log)"
    [ "$peak" -lt $((1024 * $1)) ] || die "more than $1 kB"
    as_planned log "$1 kB"
}

# The whole graph has no room; batches have, the more of them the less there is. Who goes on has as many.
automatic() {
    (ulimit -v 4000000 && timeout 20 "$STARLING" version) >/dev/null 2>&1 || skip "no ulimit -v here"
    cd "$T" || exit 1
    "$STARLING" generate community far --vertices 40000 --classes 20 --degree 4 --features 16 --homophily 0.99 --seed 5 >out ||
        die "$(cat out)"
    (ulimit -v 600000 && run 1 train far --layers 12 --hidden 192 --workers 1 --recompute none --epochs 1) && die "the whole graph fits"
    sentence "ulimit -v or -d leaves" err
    train one-fits 1 train "$T/small" --epochs 1 --max-hop 1 --batches co:auto
    head -n 1 log | grep -q '"batches":"co:1"' || die "not one batch, which fits: $(head -n 1 log)"
    cd "$T" || exit 1
    chosen 640000
    few=$R
    grep -q "^chosen for this dataset: .*--batches co:$R" out || die "$(cat out)"
    chosen 560000
    [ "$few" -gt 1 ] && [ "$R" -gt "$few" ] || die "not more batches in less memory"
    run 1 train far --resume ck --epochs 2 --log log || die "$(cat err)"
    head -n 1 log | grep -q "\"batches\":\"co:$R\"" || die "others when resumed: $(head -n 1 log)"
    rm -r far
}

# Where messages are dear, a group preloads all hops; where they cost nothing, one. The choice trains as when asked for.
preloads() {
    "$STARLING" generate community "$T/weak" --vertices 2000 --classes 4 --degree 6 --features 8 >"$T/out" || die "$(cat "$T/out")"
    for case in "all:1e-3:1e5" "1:1e-12:1e15"; do
        IFS=: read -r wanted latency speed <<EOF
$case
EOF
        set -- "$T/weak" --layers 4 --hidden 32 --epochs 4 --groups 2x1
        train "preload-$wanted" 2 train "$@" --preload-hops "$wanted"
        slow_link "$latency" "$speed"
        XDG_CACHE_HOME=$T/slow
        train "preload-auto-$wanted" 2 train "$@" --preload-hops auto
        XDG_CACHE_HOME=$T/cache
        grep "^preloaded hops $wanted: " out || die "not $wanted: $(cat out)"
        head -n 1 log | grep -q "\"preload-hops\":\"$wanted\".*\"preload_reason\":\"$wanted: " ||
            die "$(head -n 1 log)"
        cmp "$T/preload-$wanted/ck" ck || die "other parameters than with --preload-hops $wanted"
    done
}

# The command plans what groups preload, and the rows that travel between them.
preload_plan() { # HOPS OPTION ...
    hops=$1
    shift
    set -- "$T/strong" --layers 4 --hidden 16 --seed 7 "$@"
    train planned-all 4 train "$@" --epochs 2 --eval-every 100 --groups 2x2
    sums=$(of_groups planned-all between bytes)
    "$STARLING" plan "$@" --ranks 4 --groups 2x2 --json "$T/preload.json" >"$T/out" || die "$(cat "$T/out")"
    for h in $hops; do
        train planned-$h 4 train "$@" --epochs 2 --eval-every 100 --groups 2x2 --preload-hops $h
        rows=$((($(of_groups planned-$h between bytes) - sums) / 4 / 16))
        share=$(head -n 1 log | sed -n 's/.*"preloaded_share":\[\([^]]*\)\].*/\1/p' | tr ',' '\n' | sort -g | tail -n 1)
        tr -d ' \n' <"$T/preload.json" | sed 's/.*"groups":\[//' | tr '{}' '\n\n' | grep "\"preload_hops\":$h," | tr ',:' '\n\n' |
            awk -v h=$h -v rows=$rows -v share="$share" '
                last ~ /rows_between/ { planned = $1 } last ~ /preloaded_share/ { part = $1 } { last = $1 }
                END { print h ": " planned " rows and " part " planned; " rows " and " share
                      exit !(planned == rows && rows > 0 && part - share < 1e-9 && share - part < 1e-9) }' ||
            die "$(cat "$T/preload.json")"
    done
    grep -A 2 '^--groups 2x2: ' "$T/out" | grep -q 'outer / inner' || die "$(cat "$T/out")"
    "$STARLING" plan "$@" --ranks 3 --groups 2x2 >"$T/out" 2>"$T/err" && die "2x2 groups of 3 ranks"
    sentence "--groups 2x2: expected a DATASET, and GxP" "$T/err"
}

on() { # GRAPH COMMAND ...
    graph=$1
    shift
    "$@"
}

# messages_plan DISTRIBUTION OPTION ...: bytes and messages inside groups, and bytes between them, are those planned,
# with the fewest hops or with all: cases take turns. The halo's only case has both.
messages_plan() {
    kind=$1
    shift
    set -- "$T/${graph:-small}" --groups 2x2 --tiles 7 --hidden 12 --dropout 0.3 "$@"
    "$STARLING" plan "$@" --distribution "$kind" --ranks 4 --json "$T/inside.json" >"$T/out" 2>"$T/err" || die "$(cat "$T/err")"
    tr -d ' \n' <"$T/inside.json" | sed 's/.*"groups":\[//' | tr '{' '\n' | grep preload_hops >"$T/rows"
    long=1 one_of=2
    [ "$kind" != halo ] || long=2
    some 1 '$'
    for row in $all; do
        sed -n "${row}p" "$T/rows" >"$T/row"
        h=$(sed 's/.*"preload_hops":\([0-9]*\).*/\1/' "$T/row")
        [ $row = 1 ] && [ "$(wc -l <"$T/rows")" -gt 1 ] || h=all
        [ "$kind" = 2d ] && how="--grid 1x2x1" || how="--distribution $kind"
        # shellcheck disable=SC2086
        train inside-$h 4 train "$@" $how --epochs 2 --eval-every 100 --preload-hops $h
        for figure in inside:bytes inside:messages between:bytes; do
            planned=$(sed "s/.*\"${figure%:*}_${figure#*:}\":\([0-9]*\).*/\1/" "$T/row")
            measured=$(of_groups inside-$h "${figure%:*}" "${figure#*:}")
            echo "$h hops, $figure: $planned planned, $measured sent"
            [ "$measured" -gt 0 ] && [ "$planned" = "$measured" ] || die "$h hops, $figure: $planned planned, $measured sent"
        done
    done
}

# batches_plan DISTRIBUTION OPTION ...: so are those of samples and of batches, in the first epoch, and their shares.
batches_plan() {
    kind=$1
    shift
    set -- "$T/small" --groups 2x2 --tiles 7 --hidden 12 --layers 3 --distribution "$kind" "$@"
    "$STARLING" plan "$@" --ranks 4 --json "$T/inside.json" >"$T/out" 2>"$T/err" || die "$(cat "$T/err")"
    tr -d ' \n' <"$T/inside.json" | sed 's/.*"groups":\[//' | tr '{' '\n' | grep preload_hops | sed -n '$p' >"$T/row"
    train batches-planned 4 train "$@" --epochs 1 --eval-every 100
    for figure in inside:bytes inside:messages between:bytes between:messages; do
        planned=$(sed "s/.*\"${figure%:*}_${figure#*:}\":\([0-9]*\).*/\1/" "$T/row")
        measured=$(of_groups batches-planned "${figure%:*}" "${figure#*:}")
        echo "$figure: $planned planned, $measured sent"
        [ "$measured" -gt 0 ] && [ "$planned" = "$measured" ] || die "$figure: $planned planned, $measured sent"
    done
    for figure in preloaded_share redundant_share; do
        planned=$(sed "s/.*\"$figure\":\([0-9.]*\).*/\1/" "$T/row")
        measured=$(head -n 1 log | sed -n "s/.*\"$figure\":\[\([^]]*\)\].*/\1/p" | tr ',' '\n' | sort -g | tail -n 1)
        awk "BEGIN { exit !($planned - $measured < 1e-9 && $measured - $planned < 1e-9) }" ||
            die "$figure: $planned planned, $measured there"
    done
    steps=$(head -n 1 log | sed 's/.*"steps_per_epoch":\([0-9]*\).*/\1/')
    grep -q "\"steps\":$steps," "$T/row" || die "$steps steps: $(cat "$T/row")"
    grep -q '^--groups 2x2: ' "$T/out" || die "$(cat "$T/out")"
}

# One group, and the words of what is not predicted.
one_group_planned() {
    "$STARLING" plan "$T/small" --ranks 4 --groups 1x4 --distribution halo --layers 2 >"$T/out" || die "$(cat "$T/out")"
    grep -q '^  2 hops  *1  .* halo ' "$T/out" || die "$(cat "$T/out")"
    "$STARLING" plan "$T/small" --ranks 4 --batches co:auto >"$T/out" || die "$(cat "$T/out")"
    grep -q '^--batches co:auto: training counts the batches' "$T/out" || die "$(cat "$T/out")"
    "$STARLING" plan "$T/small" --ranks 2 --batches co:3 --distribution vertex-cut --hidden 8 --tiles 6 --partition random \
        --json "$T/inside.json" >"$T/out" || die "$(cat "$T/out")"
    planned=$(tr -d ' \n' <"$T/inside.json" | sed 's/.*"groups":\[//; s/.*"inside_bytes":\([0-9]*\).*/\1/')
    train one-group 2 train "$T/small" --batches co:3 --distribution vertex-cut --hidden 8 --tiles 6 --partition random --epochs 1 \
        --eval-every 100
    sent=$(tail -n 1 log | sed -n 's/.*"traffic_per_epoch":{"bytes_sent":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p' | awk '{ print $1 + $2 }')
    echo "$planned planned, $sent sent"
    [ "$sent" -gt 0 ] && [ "$sent" = "$planned" ] || die "$planned bytes planned, $sent sent"
}

# Unlike groups wait; the sum of shares is the epoch.
waits_planned() {
    "$STARLING" plan "$T/small" --ranks 2 --groups 2x1 --layers 2 --hidden 8 --batches clusters:9,2 --json "$T/waits.json" \
        >"$T/out" || die "$(cat "$T/out")"
    tr -d ' \n' <"$T/waits.json" | sed 's/.*"groups":\[//' | tr '{' '\n' | grep preload_hops | sed -n '$p' >"$T/row"
    for figure in compute inside between waiting epoch; do
        sed "s/.*\"${figure}_seconds\":\([-+0-9.e]*\).*/\1/" "$T/row"
    done | tr '\n' ' ' | awk '{ print; sum = $1 + $2 + $3; exit !($4 > 0 && $4 < $5 && sum / $5 > 0.999999 && sum / $5 < 1.000001) }' ||
        die "$(cat "$T/row")"
}

# With sums of the features from the whole graph, a group has one hop less, on clones, too.
one_hop_less() {
    set -- "$T/strong" --layers 2 --hidden 8 --dropout 0 --epochs 1 --groups 2x1
    for case in halo cached-halo cached-vertex-cut; do
        [ "${case#cached-}" = "$case" ] && cached="--input-dropout 0.1" || cached=--cache-aggregate
        # shellcheck disable=SC2086
        train "hops-$case" 2 train "$@" --distribution "${case#cached-}" $cached
        head -n 1 log | sed -n 's/.*"outer_vertices":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p' >"$T/outer-$case"
    done
    cat "$T"/outer-*
    cmp "$T/outer-cached-halo" "$T/outer-cached-vertex-cut" || die "other vertices on clones"
    paste -d ' ' "$T/outer-cached-halo" "$T/outer-halo" | awk '{ exit !($1 > 0 && $2 > 0 && $1 < $3 && $2 < $4) }' ||
        die "no fewer vertices"
}

# preload_figures KEY: of $T/preload.json, of one hop and of two.
preload_figures() {
    tr -d '\n ' <"$T/preload.json" | sed 's/.*"groups":\[//' | tr '{,' '\n\n' | sed -n "s/^\"$1\":\([^}]*\).*/\1/p"
}

# machine LATENCY BYTES FEATURES: seconds of a message; bytes, and multiplications with sparse features, in a second. All else
# takes nothing.
machine() {
    echo '{"rank": {"cores": 1, "memory_bytes": 1e9, "cache_bytes": 1e6, "gemm_flops_per_second": 1e24,
        "stream_bytes_per_second": 1e24, "gather_64_bytes_per_second": 1e24, "gather_1024_bytes_per_second": 1e24,
        "features_flops_per_second": '"$3"', "draws_per_second": 1e24, "task_seconds": 0},
        "node": {"ranks": 1, "latency_seconds": '"$1"', "bytes_per_second": '"$2"'},
        "network": {"latency_seconds": '"$1"', "bytes_per_second": '"$2"'}}'
}

# Inside groups, the plan takes what is faster: a cover where bytes are dear, a vertex-cut where messages are.
inside_choice() {
    "$STARLING" generate rmat "$T/far" --scale 12 --edge-factor 8 --features 5 --classes 3 >"$T/out" || die "$(cat "$T/out")"
    for case in "cover 0 1e6" "vertex-cut 1 1e9"; do
        # shellcheck disable=SC2086
        set -- $case
        machine "$2" "$3" 1e24 >"$T/dear.json"
        for kind in halo cover vertex-cut any; do
            [ $kind = any ] && asked= || asked="--distribution $kind"
            # shellcheck disable=SC2086
            "$STARLING" plan "$T/far" --ranks 4 --groups 2x2 --layers 3 --hidden 16 --tiles 8 --machine "$T/dear.json" \
                --json "$T/preload.json" $asked >"$T/out" || die "$(cat "$T/out")"
            preload_figures epoch_seconds >"$T/epoch-$kind"
        done
        [ "$(preload_figures inside_distribution | sort -u)" = "\"$1\"" ] || die "not $1: $(cat "$T/preload.json")"
        cmp "$T/epoch-any" "$T/epoch-$1" || die "other times"
        paste "$T/epoch-any" "$T/epoch-halo" "$T/epoch-cover" "$T/epoch-vertex-cut" |
            awk '{ print; bad = bad || $1 > $2 || $1 > $3 || $1 > $4 } END { exit bad || NR < 3 }' || die "slower than others"
    done
}

# Of many groups, the choice has the shortest epoch, messages between groups and all. A model of one layer whose sums are
# there has nothing to preload.
inside_choice_of_many() {
    "$STARLING" generate rmat "$T/near" --scale 10 --edge-factor 8 --features 5 --classes 3 >"$T/out" || die "$(cat "$T/out")"
    set -- "$T/near" --ranks 64 --layers 3 --hidden 16 --json "$T/preload.json"
    for groups in 16x4 32x2; do
        for kind in any 1d 2d halo vertex-cut; do
            [ $kind = any ] && asked= || asked="--distribution $kind"
            # shellcheck disable=SC2086
            "$STARLING" plan "$@" --groups $groups $asked >"$T/out" 2>&1 || continue
            preload_figures epoch_seconds >"$T/epoch-$kind"
            paste "$T/epoch-any" "$T/epoch-$kind" | awk '{ bad = bad || $1 > $2 } END { exit bad || NR < 3 }' ||
                die "$groups: $kind is faster: $(cat "$T/epoch-any" "$T/epoch-$kind")"
        done
    done
    "$STARLING" plan "$T/near" --ranks 4 --groups 2x2 --layers 1 --cache-aggregate --dropout 0 --hidden 8 --json "$T/preload.json" \
        >"$T/out" || die "$(cat "$T/out")"
    [ "$(preload_figures rows_between)" = 0.0 ] && [ "$(preload_figures preloaded_share)" = 0.0 ] || die "$(cat "$T/out")"
}

# Twelve vertices, all joined, whose features are their numbers: each group has all of them within one hop. The machine
# multiplies 1e6 sparse features in a second, and all else takes nothing. Each of two products of the first layer has 12
# entries of width 8. Sums of the features are dense. The link takes a second for each byte of the weights,
# 12 x 8 and 8 x 3 numbers, whose gradients go to rank 0.
preload_features() {
    awk 'BEGIN { for (a = 0; a < 12; a++) for (b = 0; b < 12; b++) if (a != b) print a, b }' | dataset "$T/full" 12 0
    machine 0 1 1e6 >"$T/features.json"
    for case in "no-cache-aggregate:4 * 12 * 8 / 1e6" cache-aggregate:0; do
        "$STARLING" plan "$T/full" --ranks 2 --groups 2x1 --hidden 8 --dropout 0 --${case%%:*} --machine "$T/features.json" \
            --json "$T/preload.json" >"$T/out" || die "$(cat "$T/out")"
        preload_figures compute_seconds >"$T/computing"
        preload_figures between_seconds >"$T/between"
        awk "{ wanted = ${case#*:}; print; exit !(\$1 > 0.999 * wanted - 1e-9 && \$1 < 1.001 * wanted + 1e-9) }" \
            "$T/computing" || die "not ${case#*:} s of computing: $(cat "$T/computing")"
        awk 'END { print; exit !($1 == 2 * 4 * (12 * 8 + 8 * 3)) }' "$T/between" || die "$(cat "$T/between") s of messages"
    done
}

check "data" data
for layers in 2 3 5; do
    check "gcn of $layers layers: groups 1x2 2x1 2x2 3x1 equal one rank" exact_some "gcn-$layers" 8 \
        "2:--groups_1x2 2:--groups_2x1 4:--groups_2x2 3:--groups_3x1" "$T/small" --layers $layers --hidden 12 --dropout 0.3
done
check "a directed, weighted graph" exact directed 8 "2:--groups_2x1 3:--groups_3x1" "$T/directed" --layers 3 --hidden 8 \
    --dropout 0.2
check "graphsage, mean and max" exact sage 6 "2:--groups_2x1" "$T/small" --model sage --hidden 8
check "graphsage, max" exact sage-max 6 "2:--groups_2x1" "$T/small" --model sage --aggregator max --hidden 8
check "attention" exact gat 6 "2:--groups_2x1 4:--groups_2x2" "$T/small" --model gat --heads 2 --hidden 4
for norm in row batch; do
    check "resgcn, $norm" exact "resgcn-$norm" 6 "2:--groups_2x1 4:--groups_2x2" "$T/small" --model resgcn --layers 3 \
        --hidden 8 --block-norm $norm --dropout 0.2
done
check "gin, sgc and appnp" exact gin 6 "2:--groups_2x1" "$T/small" --model gin --hidden 8
check "appnp" exact appnp 6 "2:--groups_2x1" "$T/small" --model appnp --hops 3 --hidden 8
check "jknet" exact jknet 6 "2:--groups_2x1 4:--groups_2x2" "$T/small" --model jknet --layers 3 --hidden 8 --dropout 0.2
check "inner distributions" exact inner 5 "4:--groups_2x2_--distribution_cover 4:--groups_2x2_--distribution_vertex-cut" \
    "$T/small" --layers 3 --hidden 12 --dropout 0.3
for model in "gcn --dropout 0.3" "sage --dropout 0.2" "sage --aggregator max" "gat --heads 2" \
    "resgcn --block-norm batch --dropout 0.2" "resgcn --block-norm row --dropout 0.2" "jknet --dropout 0.2"; do
    # shellcheck disable=SC2086
    check "tiles of one hop: $model" exact_some "hops-$(echo "$model" | tr ' ' _)" 4 \
        "2:--groups_2x1_--tiles_12 2:--groups_2x1_--tiles_12_--distribution_vertex-cut 4:--groups_2x2_--tiles_12_--distribution_1d 4:--groups_2x2_--tiles_12_--distribution_halo 4:--groups_2x2_--tiles_12_--distribution_vertex-cut" \
        "$T/strong" --layers 3 --hidden 8 --model $model
done
check "tiles of one hop: grids" exact hops-grids 4 \
    "4:--groups_2x2_--tiles_12_--grid_1x2x1 4:--groups_2x2_--tiles_12_--grid_1x1x2 4:--groups_2x2_--tiles_12_--distribution_cover" \
    "$T/strong" --layers 3 --hidden 8 --dropout 0.3
check "tiles of one hop: outputs made again" exact hops-again 4 "2:--groups_2x1_--tiles_12" "$T/strong" --layers 3 \
    --hidden 8 --model resgcn --block-norm row --recompute 2
check "tiles of one hop: bfloat16" within 3e-4 exact hops-bf16 4 \
    "2:--groups_2x1_--tiles_12 4:--groups_2x2_--tiles_12 4:--groups_2x2_--tiles_12_--distribution_vertex-cut" \
    "$T/strong" --layers 3 --hidden 8 --precision bf16
check "tiles of one hop: copies that are refreshed" exact hops-refreshed 4 "2:--groups_2x1_--tiles_12_--preload-hops_2" \
    "$T/strong" --layers 5 --hidden 8 --dropout 0.3
for kind in 1d halo vertex-cut; do
    check "$kind: each rank has its share of the inner vertices" shares $kind
done
for kind in halo cover vertex-cut; do
    check "$kind: rows that no layer reads do not travel" idle_rows $kind
done
check "gcn: rows that no layer reads are not computed" fewer fewer-gcn --model gcn --layers 4 --hidden 8 --dropout 0.3
check "graphsage: rows that no layer reads are not computed" fewer fewer-sage --model sage --layers 4 --hidden 8 --dropout 0.3
check "gat: rows that no layer reads are not computed" fewer fewer-gat --model gat --layers 4 --hidden 8 --dropout 0.3
check "vertex-cut: rows that no layer reads are not computed" fewer fewer-cut --layers 4 --hidden 8 --dropout 0.3 \
    --distribution vertex-cut
check "resgcn: rows that no layer reads are not computed" fewer fewer-resgcn --model resgcn --layers 4 --hidden 8 --dropout 0.3
for model in gcn sage "gin --normalize-features l1"; do
    for features in dense sparse; do
        [ $features = dense ] && data=small || data=sparse
        # shellcheck disable=SC2086
        check "sums from the whole graph: $model, $features" exact_some "sums-$features-${model%% *}" 4 \
            "2:--groups_2x1 4:--groups_2x2_--distribution_1d 4:--groups_2x2_--distribution_halo 4:--groups_2x2_--distribution_cover 4:--groups_2x2_--grid_1x2x1 2:--groups_2x1_--preload-hops_1 3:--groups_3x1_--preload-hops_2 4:--groups_2x2_--distribution_vertex-cut" \
            "$T/$data" --layers 4 --hidden 8 --dropout 0.2 --input-dropout 0 --cache-aggregate --model $model
    done
done
check "sums from the whole graph: one hop less" one_hop_less
check "sums from the whole graph: directed, weighted, one layer" exact sums-one 4 "2:--groups_2x1 4:--groups_2x2" \
    "$T/directed" --layers 1 --dropout 0 --cache-aggregate
check "sums from the whole graph: directed, weighted, on clones" exact sums-clones 4 \
    "2:--groups_2x1_--distribution_vertex-cut 4:--groups_2x2_--distribution_vertex-cut" \
    "$T/directed" --layers 3 --hidden 8 --dropout 0 --cache-aggregate --model sage
check "sums from the whole graph: bfloat16" within 3e-4 exact sums-bf16 4 "2:--groups_2x1 4:--groups_2x2" "$T/small" \
    --layers 3 --hidden 8 --dropout 0 --precision bf16
check "balanced class weights" exact weights 5 "2:--groups_2x1" "$T/small" --hidden 8 --class-weights balanced
check "one cooperative batch is the whole graph" one_batch
check "words between groups" crossing
check "sizes of groups and batches in the log" sizes
check "memory of groups, as planned" planned 0.99 4 "4:--groups_2x2"
check "memory of groups with sums from the whole graph, as planned" planned 0.99 3 \
    "2:--groups_2x1_--dropout_0_--model_sage 2:--batches_co:3_--dropout_0"
check "memory of copies, and of clones, as planned" planned 0.7 3 \
    "3:--groups_3x1_--preload-hops_1 4:--groups_2x2_--preload-hops_1_--distribution_vertex-cut"
check "memory of copies of columns, as planned" columns_planned
check "memory of batches, as planned" planned 0.99 4 \
    "1:--batches_clusters:12,4 2:--batches_co:3_--distribution_halo 2:--groups_2x1_--batches_co:2_--max-hop_1"
check "as many batches as fit" automatic
check "preloaded hops by predicted time" preloads
check "the command plans preloaded hops" preload_plan "1 2"
check "... with sums from the whole graph" preload_plan "1 2" --input-dropout 0
check "... of sparse features, and their parameters" preload_features
check "messages as planned: gcn, halo" messages_plan halo --layers 3 --product-order spmm
check "messages as planned: sage, cover" messages_plan cover --layers 3 --model sage --hidden 24
check "messages as planned: gat, cover" messages_plan cover --layers 2 --model gat --heads 2
check "messages as planned: resgcn with columns normalised, 1d" messages_plan 1d --layers 3 --model resgcn --block-norm batch
check "messages as planned: gin, 1.5d, bfloat16" messages_plan 1.5d --layers 2 --model gin --precision bf16
check "messages as planned: jknet, 2d" messages_plan 2d --layers 3 --model jknet
check "messages as planned: gcn, 2d" messages_plan 2d --layers 4 --model gcn
check "messages as planned: gcn, vertex-cut" messages_plan vertex-cut --layers 4
check "messages as planned: resgcn with columns normalised, vertex-cut" messages_plan vertex-cut --layers 3 --model resgcn \
    --block-norm batch
check "messages as planned: sage, vertex-cut" messages_plan vertex-cut --layers 3 --model sage --hidden 24
check "messages as planned: gat, vertex-cut" messages_plan vertex-cut --layers 2 --model gat --heads 2
check "messages as planned: sums of sparse features, vertex-cut" on sparse messages_plan vertex-cut --layers 3 --dropout 0 \
    --cache-aggregate
check "a sample as planned: halo" batches_plan halo --max-hop 1
check "a sample of two hops as planned: vertex-cut" batches_plan vertex-cut --max-hop 2 --fanout 3
check "batches as planned: cover" batches_plan cover --batches co:3
check "batches as planned, some without training vertices: halo" batches_plan halo --batches co:20 \
    --max-hop 1 --split 6/20/rest
check "batches of samples as planned: 1d, sage" batches_plan 1d --batches co:3 --max-hop 1 --model sage
check "batches of clusters as planned: vertex-cut" batches_plan vertex-cut --batches clusters:10,2
check "batches with sums from the whole graph, as planned" batches_plan halo --batches co:2 --dropout 0 --cache-aggregate
check "waiting for the slowest group, as planned" waits_planned
check "one group planned" one_group_planned
check "batches of a graph of published sizes" refused "--batches co:3: expected a DATASET" plan --like arxiv --ranks 4 --batches co:3
check "the faster of a vertex-cut and others inside groups" inside_choice
check "the fastest inside many groups" inside_choice_of_many
check "a distribution of groups, without groups" refused "--distribution halo: expected --groups, too" \
    plan "$T/small" --ranks 4 --distribution halo
check "a distribution that groups cannot have" refused "--distribution 3d: not with groups of 2 ranks" \
    plan "$T/small" --ranks 4 --groups 2x2 --distribution 3d
check "copies that are refreshed" exact refreshed 6 \
    "2:--groups_2x1_--preload-hops_1 4:--groups_2x2_--preload-hops_2 3:--groups_3x1_--preload-hops_3" "$T/small" \
    --layers 5 --hidden 12 --dropout 0.3
check "refreshed copies of a directed, weighted graph" exact refreshed-directed 6 "2:--groups_2x1_--preload-hops_1" \
    "$T/directed" --layers 3 --hidden 8
check "refreshed copies: attention" exact refreshed-gat 4 "2:--groups_2x1_--preload-hops_1" "$T/small" --model gat \
    --layers 3 --heads 2 --hidden 4
check "refreshed copies: maxima" exact refreshed-max 4 "2:--groups_2x1_--preload-hops_1" "$T/small" --model sage \
    --aggregator max --layers 3 --hidden 8
check "refreshed copies: normalised columns" exact refreshed-batch 4 "3:--groups_3x1_--preload-hops_2" "$T/small" \
    --model resgcn --layers 5 --hidden 8 --block-norm batch --dropout 0.2
check "parts of PT-Scotch" together
check "PT-Scotch where METIS has no room" room_for_metis
check "copies that are refreshed late" late
check "refreshed copies that have leaves" copies_with_leaves
check "refreshed copies on grids of four ranks" exact refreshed-grids 4 "8:--groups_2x4_--grid_2x2x1_--preload-hops_1" "$T/small" \
    --layers 4 --hidden 11
check "rows that are late where columns are cut" alike late-columns 6 \
    "2:--groups_2x1 4:--groups_2x2_--grid_1x2x1 4:--groups_2x2_--distribution_1.5d" "$T/small" --layers 4 --hidden 11 \
    --preload-hops 1 --delay cd-2 --dropout 0.3
check "refreshed copies in bfloat16" alike refreshed-bf16 4 \
    "2:--groups_2x1 4:--groups_2x2_--grid_1x2x1 4:--groups_2x2_--distribution_vertex-cut" "$T/small" --layers 4 --hidden 11 \
    --precision bf16 --preload-hops 1
check "all hops of clones that never meet" train hops-never 3 train "$T/small" --layers 2 --groups 3x1 --preload-hops 2 \
    --distribution vertex-cut --delay 0c --epochs 2
check "copies that never meet" refused "--delay 0c: with --preload-hops 1, rows of other groups have exact sums" \
    train "$T/small" --layers 3 --groups 3x1 --preload-hops 1 --distribution vertex-cut --delay 0c
check "training with late rows" trains late-rows 2 "$T/strong" --hidden 16 --layers 3 --groups 2x1 --preload-hops 1 --delay cd-2
check "samples" trains eas 2 "$T/strong" --hidden 16 --groups 2x1 --max-hop 1 --fanout 3
check "samples drawn anew" trains resample 2 "$T/strong" --hidden 16 --groups 2x1 --max-hop 1 --fanout 3 --resample 2
check "cooperative batches" trains co 1 "$T/strong" --hidden 16 --batches co:4 --max-hop 1
check "cooperative batches in groups" trains co-groups 2 "$T/strong" --hidden 16 --groups 2x1 --batches co:3 --max-hop 1
check "batches on vertex-cuts" alike batches-cut 6 \
    "1: 2:--distribution_1d 2:--distribution_vertex-cut 3:--distribution_vertex-cut_--partition_libra" "$T/small" \
    --layers 3 --hidden 8 --batches co:4 --dropout 0.3 --order none
check "batches do not show the order" alike batches-orders 3 \
    "1: 1:--order_rabbit 1:--order_random 2:--distribution_halo 2:--distribution_cover_--order_rabbit" "$T/small" \
    --layers 3 --hidden 8 --batches co:3 --dropout 0.3
check "clusters do not show the order" alike clusters-orders 3 "1: 1:--order_random 2:--distribution_halo" "$T/small" --hidden 8 \
    --batches clusters:12,5 --dropout 0.3
check "batches in groups do not show the order" alike groups-orders 3 "2:--groups_2x1 2:--groups_2x1_--order_random" "$T/small" \
    --hidden 8 --batches co:2
check "samples on vertex-cuts" alike samples-cut 6 "1: 3:--distribution_vertex-cut" "$T/directed" --layers 2 --hidden 8 \
    --batches co:3 --dropout 0.3 --fanout 2 --resample 2 --order none
check "clusters on vertex-cuts" alike clusters-cut 6 "1: 3:--distribution_vertex-cut" "$T/small" --layers 2 --hidden 8 \
    --batches clusters:12,5 --dropout 0.3
check "batches in groups of vertex-cuts" alike groups-batches-cut 6 \
    "2:--groups_2x1 2:--groups_2x1_--distribution_vertex-cut 4:--groups_2x2_--distribution_vertex-cut" "$T/small" --layers 3 \
    --hidden 8 --batches co:3 --max-hop 1 --dropout 0.3
check "exact cooperative batches" trains co-exact 1 "$T/strong" --hidden 16 --batches co:3
check "clusters" trains clusters 1 "$T/strong" --hidden 16 --batches clusters:12,4
check "clusters on two ranks" trains clusters-2 2 "$T/strong" --hidden 16 --batches clusters:12,4 --distribution halo
check "resume: clusters" resumes resume-clusters 1 "$T/strong" --hidden 16 --batches clusters:12,5
check "resume: groups and batches" resumes resume-groups 2 "$T/strong" --hidden 16 --groups 2x1 --batches co:2 --max-hop 1 \
    --resample 3
check "groups and sets without vertices" empty
check "predictions" predicts
check "wide layers" wide
check "--groups that do not fit" refused "--groups 2x2: this run has 3 ranks" train "$T/small" --groups 2x2
check "--batches that are none" refused "--batches co: expected full, co:R" train "$T/small" --batches co
check "--delay without refreshed copies" refused "--delay cd-2: expected --groups GxP and --preload-hops N" \
    train "$T/small" --groups 3x1 --delay cd-2
check "--fanout alone is of one hop" usual_sample
check "--fanout with all hops" refused "--fanout 5: expected no --max-hop all with it" train "$T/small" --groups 3x1 \
    --max-hop all --fanout 5
check "--fanout without groups" refused "--fanout 5: expected --groups GxP or --batches co:R" train "$T/small" --fanout 5
check "--resample without a sample" refused "--resample 2: expected --max-hop N or --fanout K" train "$T/small" --groups 3x1 \
    --resample 2
check "--max-hop alone" refused "--max-hop 1: expected --groups GxP or --batches co:R" train "$T/small" --max-hop 1
finish
