#!/bin/sh
# Vertex-cuts: exact ones do not change results but for rounding (tests/every-cut.sh has more of them); delayed ones are
# what algorithm 4 of DistGNN says (tests/test_vertex_cut.c). One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="cuts continued exact_end evaluated exact_before_all_bins simulated within memory"
program=${top_builddir:-.}/tests/test_vertex_cut
case $program in /*) ;; *) program=$PWD/$program ;; esac

# cuts NAME "RANKS ..." OPTION ...: the same losses on one rank and on these.
cuts() {
    name=$1 all=$2
    shift 2
    train "$name-1" 1 train "$@" --epochs 6
    for n in $all; do
        train "$name-$n" "$n" train "$@" --epochs 6 --distribution vertex-cut
        near "$name-1" "$name-$n" 6
        [ "$(traffic "$name-$n" sums_received)" -gt 0 ] || die "no vertex was split"
    done
}

simulated() { # RANKS
    timeout 300 "$MPIRUN" -n "$1" "$program" || die "exit status $?"
}

# Vertices without edges, and parts without vertices.
islands() {
    "$STARLING" generate rmat "$T/islands" --scale 6 --edge-factor 1 --features 5 --classes 3 >"$T/out" || exit 1
    "$STARLING" info "$T/islands" | grep -q ' [1-9][0-9]* isolated' || die "no vertex without edges"
    cuts islands "2 3" "$T/islands" --layers 3 --tiles 7
    cuts crowd 4 "$karate" --tiles 1 --layers 2
}

# A file of starling partition; what it says wrong is said.
from_file() {
    "$STARLING" convert "$karate" "$T/cut" --quiet || exit 1
    cd "$T" || exit 1
    for method in libra hdrf metis random; do
        "$STARLING" partition "$T/cut" --method $method --parts 3 --seed 5 --out "$T/cut-$method-3.npy" --quiet || exit 1
        train "named-$method" 3 train "$T/cut" --epochs 4 --distribution vertex-cut --partition $method --seed 5
        train "file-$method" 3 train "$T/cut" --epochs 4 --distribution vertex-cut --seed 5 \
            --partition "$T/cut-$method-3.npy"
        results "$T/named-$method/log" >"$T/one"
        results "$T/file-$method/log" | diff "$T/one" - || die "other losses out of the file of $method"
    done
    cd "$T" || exit 1
    "$STARLING" partition cut --method libra --parts 2 --quiet || exit 1
    "$STARLING" partition directed --method libra --parts 3 --out other.npy --quiet || exit 1
    refused "has 2 parts, expected 3" train cut --distribution vertex-cut --partition cut-libra-2.npy
    refused "other.npy: is of 61 vertices" train cut --distribution vertex-cut --partition other.npy
    sed 's/"fingerprint": "./"fingerprint": "g/; s/"fingerprint": "g/"fingerprint": "0/' cut-libra-3.json \
        >cut/else.json
    cp cut-libra-3.npy cut/else.npy
    cmp -s cut/else.json cut-libra-3.json ||
        refused "is of another graph" train cut --distribution vertex-cut --partition cut/else.npy
    cp cut-libra-3.json cut/mixed.json
    cp cut-hdrf-3.npy cut/mixed.npy
    refused "describes another partition" train cut --distribution vertex-cut --partition cut/mixed.npy
}

# Words of an exact step: each clone beside a root sends its row and gets the sum, in both aggregations of both layers.
words() {
    for delay in cd-0 0c; do
        train "words-$delay" 4 train "$T/directed" --epochs 2 --hidden 16 --product-order gemm --distribution vertex-cut --partition libra \
            --delay $delay
    done
    "$STARLING" partition "$T/directed" --method libra --parts 4 --out "$T/words.npy" --quiet || exit 1
    clones=$(sed -n 's/.*"replication_factor": \([0-9.]*\).*/\1/p' "$T/words.json" |
        awk '{ printf "%d", ($1 - 1) * 61 + 0.5 }')
    sums=$(traffic words-cd-0 sums_received) rows=$(traffic words-cd-0 rows_received)
    echo "$clones clones beside roots: $sums bytes to roots, $rows to leaves"
    [ "$sums" -eq $((clones * 4 * 2 * (16 + 3))) ] && [ "$rows" -eq "$sums" ] || die "other words than the formula"
    [ "$(traffic words-0c sums_received)" -eq 0 ] && [ "$(traffic words-0c rows_received)" -eq 0 ] || die "0c has words"
    [ "$(traffic words-0c bytes_received)" -gt 0 ] || die "no weights"
    # Words of training epochs, and of exact ones. Of cd-2, half of the clones meet in a training epoch, forward alone.
    for delay in cd-2 0c; do
        train "words-$delay" 4 train "$T/directed" --epochs 8 --exact-epochs 2 --hidden 16 --product-order gemm \
            --distribution vertex-cut --partition libra --delay $delay
        [ "$(traffic "words-$delay" sums_received exact_)" -eq "$sums" ] || die "$delay: exact epochs have other words"
    done
    echo "$(traffic words-cd-2 rows_received) bytes to roots and leaves with cd-2, $(traffic words-0c rows_received) with 0c"
    awk "BEGIN { d = $(traffic words-cd-2 rows_received) - $sums / 2; exit !(-4 <= d && d <= 4) }" || die "cd-2: other words"
    awk "BEGIN { d = $(traffic words-cd-2 bytes_received) - $(traffic words-0c bytes_received) - $sums / 2
        exit !(-4 <= d && d <= 4) }" || die "cd-2 and 0c differ by other words"
    ! grep -q warming_up "$T/words-cd-2/log" || die "6 epochs of cd-2 are warm"
    train words-cold 4 train "$T/directed" --epochs 3 --exact-epochs 0 --hidden 16 --distribution vertex-cut --partition libra \
        --delay cd-2
    grep -q '"warming_up": *true' "$T/words-cold/log" || die "3 epochs of cd-2 are not said to be cold"
    [ "$(traffic words-0c rows_received)" -eq 0 ] || die "0c: exact epochs count as training"
    ! grep -q exact_traffic "$T/words-cd-0/log" || die "cd-0 has exact epochs apart"
}

# Evaluated exactly: the same parameters have the same accuracy on one rank.
evaluated() { # DELAY OPTION ...
    delay=$1
    shift
    train delayed 3 train "$karate" --epochs 12 --eval-every 4 --distribution vertex-cut --delay "$delay" --exact-epochs 0 --seed 3 "$@"
    cut=$(results "$T/delayed/log" | tail -n 3)
    run 1 train "$karate" --epochs 12 --resume "$T/delayed/ck" --quiet --log one
    run 1 predict "$T/delayed/ck" "$karate" --output p.npy || die "$(cat err)"
    tail -n 1 "$T/delayed/log" >end
    for split in training validation test; do
        key=$(echo $split | sed 's/training/train/; s/validation/val/')
        told=$(sed -n "s/.*\"${key}_accuracy\":\([0-9.]*\).*/\1/p" end)
        found=$(sed -n "s/.*$split \([0-9.]*\).*/\1/p" out)
        awk "BEGIN { d = $told - $found; exit !(d < 1e-4 && d > -1e-4) }" || die "$split: $told, and $found on one rank"
    done
    echo "$cut"
}

# Half the epochs on a grid, the others on a vertex-cut.
handed_over() {
    train whole 1 train "$T/directed" --epochs 8 --tiles 5
    train half 2 train "$T/directed" --epochs 4 --tiles 5 --distribution 1d
    train half 3 train "$T/directed" --epochs 8 --tiles 5 --resume ck --distribution vertex-cut
    near whole half 8
}

# The tensors of a checkpoint, which come after the description.
tensors() { # FILE
    tail -c +$(($(od -An -t u8 -N 8 "$1") + 9)) "$1"
}

# continued NAME EPOCHS OPTION ...: 17 epochs, or so many and, with the options of the checkpoint, the others: the same
# bits, of the messages on their way, too.
continued() {
    name=$1 epochs=$2
    shift 2
    train "$name-whole" 3 train "$T/directed" --epochs 17 --distribution vertex-cut "$@"
    train "$name-half" 3 train "$T/directed" --epochs "$epochs" --distribution vertex-cut "$@"
    run 3 train "$T/directed" --epochs 17 --resume ck --log rest --checkpoint ck || die "$(cat err)"
    [ ! -s err ] || die "$(cat err)"
    losses "$name-whole" | tail -n $((17 - epochs)) >"$T/one"
    sed -n 's/.*"epoch",.*"loss":\([^",}][^",}]*\).*/\1/p' rest >"$T/two"
    [ "$(wc -l <"$T/two")" -eq $((17 - epochs)) ] || die "not $((17 - epochs)) epochs"
    diff "$T/one" "$T/two" || die "other losses"
    tensors "$T/$name-whole/ck" >"$T/one"
    tensors ck | cmp - "$T/one" || die "other tensors"
}

# exact_end NAME RANKS OPTION ...: the last 4 epochs of 12, exact, are those of a run that goes on with cd-0 after 8.
exact_end() {
    name=$1 ranks=$2
    shift 2
    train "$name-first" "$ranks" train "$T/directed" --epochs 8 --distribution vertex-cut --exact-epochs 0 "$@"
    losses "$name-first" >"$T/one"
    run "$ranks" train "$T/directed" --epochs 12 --resume ck --delay cd-0 --exact-epochs 0 --log rest || die "$(cat err)"
    sed -n 's/.*"epoch",.*"loss":\([^",}][^",}]*\).*/\1/p' rest >>"$T/one"
    train "$name" "$ranks" train "$T/directed" --epochs 12 --distribution vertex-cut --exact-epochs 4 "$@"
    losses "$name" >"$T/two"
    [ "$(wc -l <"$T/two")" -eq 12 ] || die "not 12 epochs"
    diff "$T/one" "$T/two" || die "other losses"
    train "$name-never" "$ranks" train "$T/directed" --epochs 12 --distribution vertex-cut --exact-epochs 0 "$@"
    losses "$name-never" | diff - "$T/two" >diff && die "the last epochs are not exact"
    [ "$(sed -n '1s/^\([0-9]*\).*/\1/p' diff)" -gt 8 ] || die "other losses before: $(cat diff)"
}

# A checkpoint after exact epochs holds the messages of the steps before them, which are fewer than the bins here.
exact_before_all_bins() {
    for epochs in 3 6; do # of which one is exact: no totals are on their way, then totals of some bins
        train bins 2 train "$T/directed" --epochs $epochs --distribution vertex-cut --delay cd-3 --exact-epochs 1 "$@"
        grep -qaE '[^-]steps[^0-9a-z]*'$((epochs - 1))'[^0-9]' ck || die "not $((epochs - 1)) steps with late messages"
        rm -f rest
        run 2 train "$T/directed" --epochs 12 --resume ck --log rest || die "$(cat err)"
        sed -n 's/.*"epoch",.*"loss":\([^",}][^",}]*\).*/\1/p' rest >"$T/one"
        [ "$(wc -l <"$T/one")" -eq $((12 - epochs)) ] || die "not $((12 - epochs)) epochs"
    done
}

# Without the option, a tenth of the epochs is exact where sums are scaled, a fifth with 0c, and a run does not end before by
# itself.
exact_share() {
    for how in "5 --delay 0c" "2 --delay cd-3" "0 --delay 0c --partial-sums unscaled"; do
        options=${how#* }
        # shellcheck disable=SC2086
        train share 2 train "$T/directed" --epochs 29 --distribution vertex-cut $options
        losses share >"$T/one"
        # shellcheck disable=SC2086
        train counted 2 train "$T/directed" --epochs 29 --distribution vertex-cut --exact-epochs "${how%% *}" $options
        losses counted | diff "$T/one" - || die "$how: other losses"
    done
    "$STARLING" generate community "$T/validated" --vertices 2000 --classes 3 --degree 8 --features 5 >"$T/out" || exit 1
    train unbounded 2 train "$T/validated" --hidden 4 --distribution vertex-cut --delay 0c
    [ "$(losses unbounded | wc -l)" -eq 200 ] || die "$(losses unbounded | wc -l) epochs"
    train bounded 2 train "$T/validated" --hidden 4 --distribution vertex-cut --delay 0c --exact-epochs 0
    grep -q '"patience":50' "$T/bounded/log" || die "no patience without exact epochs"
}

# Ended early by --patience, saved, and continued without it.
continued_early() {
    train early-whole 3 train "$T/directed" --epochs 40 --distribution vertex-cut --delay cd-3 --lr 0.3
    train early 3 train "$T/directed" --epochs 40 --distribution vertex-cut --delay cd-3 --lr 0.3 --patience 3
    done=$(losses early | wc -l)
    [ "$done" -lt 35 ] || die "not ended early, but after $done epochs"
    run 3 train "$T/directed" --epochs 40 --patience 0 --resume ck --log rest --quiet || die "$(cat err)"
    losses early-whole | tail -n $((40 - done)) >"$T/one"
    sed -n 's/.*"epoch",.*"loss":\([^",}][^",}]*\).*/\1/p' rest | diff "$T/one" - || die "other losses"
}

# The checkpoint on the way of a run that goes on: continued, it ends as that run did.
continued_on_the_way() {
    mkdir -p "$T/way"
    cd "$T/way" || exit 1
    run 3 train "$T/directed" --epochs 200 --distribution vertex-cut --delay cd-3 --checkpoint-every 5 --checkpoint ck \
        --log log &
    background=$!
    until ln ck early 2>/dev/null; do
        kill -0 $background || die "no checkpoint on the way: $(cat err)"
        sleep 0.02
    done
    wait $background || die "$(cat err)"
    run 3 train "$T/directed" --epochs 200 --resume early --checkpoint again --log rest || die "$(cat err)"
    [ ! -s err ] || die "$(cat err)"
    losses way | tail -n "$(grep -c '"event":"epoch"' rest)" >"$T/one"
    sed -n 's/.*"epoch",.*"loss":\([^",}][^",}]*\).*/\1/p' rest | diff "$T/one" - || die "other losses"
    tensors ck >"$T/one"
    tensors again | cmp - "$T/one" || die "other tensors"
}

# With other ranks, another delay or other parts, messages on their way are dropped, and a sentence says so.
dropped() {
    train dropped 3 train "$karate" --epochs 8 --distribution vertex-cut --delay cd-3 --partition libra
    for how in "2 another number of ranks" "1 another number of ranks" "3 none --delay cd-0" \
        "3 another delay --delay cd-2" "3 another partition --partition random" \
        "3 another partition --partial-sums unscaled" "3 none --distribution 1d"; do
        words=${how#* }
        options=
        case $words in *--*) options=--${words#*--} ;; esac
        # shellcheck disable=SC2086
        run "${how%% *}" train "$karate" --epochs 12 --resume ck --log rest $options || die "$how: $(cat err)"
        sentence "--resume ck: drops the messages on their way, which are of --delay cd-3 on 3 ranks" err
        grep -q "this run has ${words%% --*}" err || die "$how: $(cat err)"
        rm rest
    done
}

memory() {
    cd "$T" || exit 1
    "$STARLING" generate community deep --vertices 6000 --classes 4 --degree 10 --features 96 >out || exit 1
    for delay in cd-0:2 cd-2:7 0c:3; do
        taken_as_planned --layers 6 --hidden 192 --distribution vertex-cut --delay ${delay%:*} --partition metis \
            --epochs ${delay#*:}
    done
    taken_as_planned --layers 3 --hidden 160 --distribution vertex-cut --no-overlap --product-order spmm
    taken_as_planned --layers 2 --hidden 160 --distribution vertex-cut --partition metis --dropout 0
}

check "a directed, weighted dataset out of an edge list" directed
check "exact: directed, 3 layers, dropout" cuts directed "2 3 4" "$T/directed" --tiles 11 --layers 3 --hidden 7 --norm row
check "exact: karate, SpMM first, one stage at a time" cuts karate "2 4" "$karate" --tiles 5 --product-order spmm --no-overlap
check "exact: bfloat16" within 1e-3 cuts narrow "3" "$T/directed" --tiles 7 --hidden 20 --precision bf16
check "exact: aggregated dense features" cuts aggregated "3" "$T/directed" --tiles 7 --dropout 0
check "exact: sparse features, one layer" cuts single "3" "$karate" --tiles 5 --layers 1 --dropout 0
check "exact: vertices without edges, ranks without tiles" islands
check "partitions out of files" from_file
check "resumed on a vertex-cut" handed_over
check "continued: cd-1" continued one 6 --delay cd-1 --layers 3
check "continued: cd-3, Libra's parts" continued libra 8 --delay cd-3 --partition libra --model sage --aggregator mean
check "continued: cd-2, unscaled sums" continued unscaled 8 --delay cd-2 --partial-sums unscaled
check "continued: cd-5, before all bins had their turn" continued young 3 --delay cd-5 --partition hdrf
check "continued: cd-2, bfloat16, SpMM first" within 1e-3 continued narrow 6 --delay cd-2 --precision bf16 --hidden 20 --product-order spmm
check "continued: cd-0, random parts" continued exact 6 --partition random
check "0c, then exact" exact_end end-0c 2 --delay 0c
check "cd-3, then exact, GraphSAGE" exact_end end-late 3 --delay cd-3 --model sage --aggregator mean
check "0c, then exact, maxima" exact_end end-max 2 --delay 0c --model sage --aggregator max
check "cd-2, unscaled, then exact, SpMM first" exact_end end-unscaled 2 --delay cd-2 --partial-sums unscaled \
    --product-order spmm
check "a share of the epochs is exact" exact_share
check "an exact epoch before all bins had their turn" exact_before_all_bins
check "... unscaled" exact_before_all_bins --partial-sums unscaled
check "exact: graph attention" cuts attention "2 4" "$T/directed" --tiles 7 --model gat --layers 3 --hidden 5 --heads 3
check "continued: 0c, graph attention" continued attention-0c 6 --delay 0c --exact-epochs 0 --model gat --hidden 4 --heads 2
check "continued: cd-2, graph attention" continued attention-late 6 --delay cd-2 --model gat --hidden 4 --heads 2
check "cd-2, then exact, graph attention" exact_end end-attention 2 --delay cd-2 --model gat --hidden 4 --heads 2
check "continued: ended early" continued_early
check "continued: from a checkpoint on the way" continued_on_the_way
check "continued otherwise: what is dropped is said" dropped
check "memory: as planned" memory
check "words on 4 ranks: those of the clones" words
check "cd-2 is evaluated exactly" evaluated cd-2
check "0c is evaluated exactly" evaluated 0c
check "0c: so is the largest of the neighbours" evaluated 0c --model sage --aggregator max
check "0c: so is graph attention" evaluated 0c --model gat --hidden 4
check "continued: 0c, the least of the neighbours" continued least 6 --delay 0c --exact-epochs 0 --model sage --aggregator min
for ranks in 2 3 5; do
    check "as simulated on $ranks ranks" simulated $ranks
done
check "a delay that is none: one sentence" refused "--delay cd-x: expected cd-0, cd-1" \
    train "$karate" --distribution vertex-cut --delay cd-x
check "a delay without a vertex-cut: one sentence" refused "--delay 0c: expected --distribution vertex-cut" \
    train "$karate" --delay 0c
check "a partition without a vertex-cut: one sentence" refused "--partition libra: expected --distribution halo, cover or vertex-cut" \
    train "$karate" --partition libra
check "exact epochs without a delay: one sentence" refused "--exact-epochs 4: expected --delay cd-R or 0c" \
    train "$karate" --distribution vertex-cut --exact-epochs 4
check "unscaled sums without a vertex-cut: one sentence" refused "--partial-sums unscaled: expected --distribution vertex-cut" \
    train "$karate" --partial-sums unscaled
check "a late maximum: one sentence" refused "--delay cd-2: --aggregator max has no gradient" \
    train "$karate" --distribution vertex-cut --delay cd-2 --model sage --aggregator max
check "another order: one sentence" refused "--order rabbit: a vertex-cut takes" \
    train "$karate" --distribution vertex-cut --order rabbit
finish
