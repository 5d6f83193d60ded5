#!/bin/sh
# --rows needed: a training step computes the rows that the loss depends on. Losses and weights are those of all rows, but for
# rounding; fewer entries are met and fewer words travel. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="models"
XDG_CACHE_HOME=$T/cache
export XDG_CACHE_HOME

# Five training vertices in each of four classes.
data() {
    directed
    sparse
    "$STARLING" generate community "$T/few" --vertices 1500 --classes 4 --degree 4 --features 12 --seed 3 >"$T/out" &&
        "$STARLING" generate community "$T/large" --vertices 30000 --classes 4 --degree 6 --features 64 --seed 4 >"$T/out" ||
        die "$(cat "$T/out")"
}

few="--split 5/30/rest --hidden 8 --eval-every 4"

# alike NAME EPOCHS "RANKS:OPTIONS ..." OPTION ...: the losses of all rows on one rank, and the last weights' accuracies, with
# needed rows on all of these; _ stands for a space.
alike() {
    name=$1 epochs=$2 all=$3
    shift 3
    train "$name-all" 1 train "$@" --epochs "$epochs" --rows all
    for case in $all; do
        ranks=${case%%:*} options=$(echo "${case#*:}" | tr _ ' ')
        # shellcheck disable=SC2086
        train "$name-$case" "$ranks" train "$@" --epochs "$epochs" --rows needed $options
        near "$name-all" "$name-$case" "$epochs"
        for what in scores validated; do
            $what "$name-all" >"$T/one"
            $what "$name-$case" >"$T/two"
            [ -s "$T/one" ] && [ "$(wc -l <"$T/one")" -eq "$(wc -l <"$T/two")" ] || die "no $what in $name-$case"
            paste "$T/one" "$T/two" | awk '{ d = $1 - $2; if (!(d * d <= 4e-6)) { print; exit 1 } }' ||
                die "other $what in $name-$case"
        done
    done
}

# The accuracies of the end.
scores() { # FOLDER
    tail -n 1 "$T/$1/log" | grep -oE '"[a-z]+_accuracy":[0-9.e-]+' | sed 's/.*://'
}

# The validation accuracies of all epochs that were evaluated.
validated() { # FOLDER
    sed -n 's/.*"epoch",.*"val_accuracy":\([-0-9.e]*\).*/\1/p' "$T/$1/log"
}

# alike_some NAME EPOCHS "RANKS:OPTIONS ..." OPTION ...: likewise, with every second of these ($one_of: of how many one is taken).
# Calls in a case take turns.
alike_some() {
    name=$1 epochs=$2 long=1 one_of=${one_of:-2}
    place=$((place + 1))
    # shellcheck disable=SC2086
    some $3
    shift 3
    alike "$name" "$epochs" "$all" "$@"
}

# Where evaluations have a graph of their own, and where they have the whole one.
layers() {
    for model in "gcn" "sage --aggregator mean" "sage --aggregator max" "gat --heads 2" "gin"; do
        for rule in 5/4/rest 5/250/rest; do
            # shellcheck disable=SC2086
            one_of=3 alike_some "layers-$(echo "$model-$rule" | tr ' /' __)" 6 "1: 2:--distribution_1d 2:--distribution_halo" "$T/few" \
                --split $rule --hidden 8 --eval-every 2 --model $model
        done
    done
}

models() {
    for model in "gcn --layers 3" "gcn --product-order spmm" "sage --aggregator mean" "sage --aggregator max --layers 3" \
        "gat --heads 2" "resgcn --layers 4 --block-norm row" "gcn --layers 3 --norm-layers row" "gcn --residual linear --classifier linear" \
        "gat --heads 2 --residual linear --classifier linear" "gcn --encoder linear --activation elu" \
        "gcn --layers 3 --residual identity --jump sum" "gat --heads 2 --residual identity --jump concat" "gcn --layers 3 --jump max" "sgc --hops 2" "appnp --hops 3" "jknet --layers 3" "gin"; do
        # shellcheck disable=SC2086
        one_of=4 alike_some "models-$(echo "$model" | tr ' ' _)" 6 "1: 1:--tiles_5 2:--distribution_1d 3:--distribution_halo
            4:--distribution_halo 2:--distribution_cover 4:--grid_2x2x1 4:--grid_2x1x2" "$T/few" $few --model $model
    done
}

# Dropout is keyed by the vertex, whatever its place; a directed graph has another transpose; weights and sparse features.
shapes() {
    ways="1: 3:--distribution_1d 3:--distribution_halo 2:--distribution_cover"
    # shellcheck disable=SC2086
    alike_some shapes-dropout 8 "$ways" "$T/few" $few --dropout 0.4
    # shellcheck disable=SC2086
    alike_some shapes-cached 8 "$ways" "$T/few" $few --input-dropout 0 --cache-aggregate
    alike_some shapes-directed 8 "$ways" "$T/directed" --hidden 8 --layers 3
    alike_some shapes-sparse 8 "$ways" "$T/sparse" --hidden 8 --layers 3
    alike_some shapes-karate 8 "$ways" "$karate" --hidden 5 --split 1/2/rest
    # shellcheck disable=SC2086
    alike shapes-bf16 6 "1:" "$T/few" $few --precision bf16
    # shellcheck disable=SC2086
    alike_some shapes-balanced 6 "$ways" "$T/few" $few --class-weights balanced --clip-norm 0.01
}

# One configuration has the same bits on any number of ranks.
bits() {
    for options in "--hidden 8 --tiles 6" "--hidden 5 --tiles 7 --model sage --layers 3 --dropout 0.3"; do
        # shellcheck disable=SC2086
        grid "bits" "2 3 4" "$T/few" --split 5/30/rest --rows needed --epochs 12 --eval-every 2 $options
    done
    for workers in 1 2; do
        train "bits-workers-$workers" 1 train "$T/large" --split 5/30/rest --hidden 8 --tiles 4 --epochs 12 --eval-every 1 \
            --workers "$workers"
        head -n 1 log | grep -q '"rows":"needed"' || die "not the choice of auto: $(head -n 1 log)"
        results log >results
    done
    [ "$(wc -l <results)" -gt 30 ] || die "an empty log"
    cmp results ../bits-workers-1/results || die "other bits with two workers"
}

# The run ends in the same epoch, with the same best one. Where few vertices validate, evaluations between epochs have these alone.
patience() {
    for rule in 5/4/rest 5/250/rest; do
        for case in all:1 needed:1 needed:3; do
            folder=patience-$case-$(echo "$rule" | tr / -)
            train "$folder" "${case#*:}" train "$T/few" --split $rule --hidden 8 --patience 8 --eval-every 2 --epochs 200 \
                --rows "${case%:*}" --distribution halo
            grep -o '"val_accuracy":[0-9.]*' log >validated
            tail -n 1 log | grep -oE '"(epochs|best_epoch|test_accuracy)":[0-9.]+' >ends
            [ "$(wc -l <ends)" -eq 3 ] && [ "$(wc -l <validated)" -gt 5 ] || die "no end: $(tail -n 1 log)"
            [ "$case" != all:1 ] || cp ends validated "$T"
            cmp ends "$T/ends" && cmp validated "$T/validated" || die "$folder: other ends: $(cat ends "$T/ends")"
            grep -q '"epochs":200' ends && die "nobody lost patience"
            tested=$(grep '"event":"epoch"' log | grep -c '"test_accuracy"')
            case $case-$rule in
            needed*-5/4/rest) [ "$tested" -eq 0 ] || die "$tested epochs tested" ;;
            *) [ "$tested" -gt 2 ] || die "$tested epochs tested" ;;
            esac
        done
    done
}

# Entries in rows that a step computes, bytes that travel, and bytes of the plan fall. Of a path of thirty vertices,
# vertices 0, 10 and 20 train: each layer more needs five vertices more, and meets ten entries more.
falls() {
    awk 'BEGIN { for (v = 0; v < 29; v++) { print v, v + 1; print v + 1, v } }' | dataset "$T/line" 30 3
    split "$T/line/train_idx.npy" 0 0 30
    for case in 1:5:5 2:10:15 3:15:25; do
        IFS=: read -r layers outer entries <<EOF
$case
EOF
        train "falls-$layers" 1 train "$T/line" --layers "$layers" --hidden 4 --epochs 2 --rows needed
        head -n 1 log | grep -q "\"inner_vertices\":\[3\],\"outer_vertices\":\[$outer\],\"adjacency_entries\":\[$entries\]" ||
            die "$layers layers: $(head -n 1 log)"
    done
    for how in 1d halo cover; do
        for rows in all needed; do
            # shellcheck disable=SC2086
            train "falls-$how-$rows" 4 train "$T/few" $few --epochs 3 --eval-every -1 --distribution $how --rows $rows
        done
        all=$(traffic "falls-$how-all" rows_received) needed=$(traffic "falls-$how-needed" rows_received)
        echo "$how: $all bytes of rows, $needed of needed ones"
        [ "$needed" -gt 0 ] && [ $((10 * needed)) -lt $((6 * all)) ] || die "as many words"
    done
    for rows in all needed; do
        train "falls-plan-$rows" 1 train "$T/large" --split 5/30/rest --epochs 2 --eval-every -1 --rows $rows
        planned activations >activations
        planned work >work
    done
    for kind in activations work; do
        all=$(cat "../falls-plan-all/$kind") needed=$(cat "../falls-plan-needed/$kind")
        echo "$kind: $all bytes, $needed of needed rows"
        [ "$needed" -gt 0 ] && [ $((2 * needed)) -lt "$all" ] || die "as much memory"
    done
}

# The planned bytes of a kind, in the log of this folder.
planned() { # KIND
    head -n 1 log | sed 's/.*"planned_bytes":{//; s/}.*//' | tr , '\n' | sed -n "s/\"$1\"://p"
}

# Every rank receives what the log says before the first epoch.
words() {
    # shellcheck disable=SC2086
    received_as_planned words "2:2x1x1 3:halo 4:2x2x1 2:halo 4:2x1x2 4:halo" "$T/few" $few --rows needed --layers 3
    # starling plan has the same graph; of a halo it counts some rows more.
    # shellcheck disable=SC2086
    set -- "$T/few" $few --layers 3 --tiles 3 --product-order gemm
    printf 'rows = "needed"\n' >"$T/rows.toml"
    "$STARLING" plan "$@" --ranks 3 --config "$T/rows.toml" --json "$T/plan.json" >"$T/out" || die "$(cat "$T/out")"
    grep -q '^rows needed: 0.* of the rows and 0.* of the adjacency entries' "$T/out" || die "$(cat "$T/out")"
    grep -q '^figures are of the .* vertices of a step; memory' "$T/out" || die "$(cat "$T/out")"
    for how in 1d:3x1x1:0 halo:halo:20; do
        over=${how##*:} how=${how%:*}
        train words-plan 3 train "$@" --rows needed --distribution "${how%:*}" --epochs 2
        most=$(measured_of log rows_received | tr , '\n' | sort -n | tail -n 1) planned=$(planned_of "${how#*:}" rows_received)
        [ "$most" -gt 0 ] && [ "$planned" -ge "$most" ] && [ $((100 * planned)) -le $(((100 + over) * most)) ] ||
            die "$how: $planned bytes planned, $most received"
    done
}

# auto, the default, takes needed rows where they pay, and says why: alike with all workers and ranks. Small graphs keep all.
chooses() {
    for case in 5/30/rest:needed 90/5/5:all; do
        for ranks in 1:1 1:2 2:1 3:1; do
            train "chooses-$ranks" "${ranks%:*}" train "$T/large" --split "${case%:*}" --hidden 64 --epochs 30 --stop-after 2 \
                --eval-every -1 --distribution 1d --workers "${ranks#*:}"
            head -n 1 log | grep -q "\"rows\":\"${case#*:}\"" || die "$case, $ranks: $(head -n 1 log)"
            head -n 1 log | grep -o '"rows_reason":"[^"]*"' >reason
            grep -q "\"${case#*:}: 0.* of the rows and 0.* of the adjacency entries are needed" reason || die "$(cat reason)"
            cmp reason "$T/chooses-1:1/reason" || die "another choice on $ranks"
        done
    done
    for options in "--split 90/5/5" "--split 5/30/rest --model resgcn --block-norm batch" \
        "--split 5/30/rest --batches clusters:9,2"; do
        # shellcheck disable=SC2086
        train chooses-all 1 train "$T/large" $options --hidden 8 --epochs 30 --stop-after 1 --eval-every -1
        head -n 1 log | grep -q '"rows":"all"' || die "$options: $(head -n 1 log)"
        head -n 1 log | grep -q '"rows_reason":"all: ' || die "$options: $(head -n 1 log)"
    done
    train chooses-distribution 2 train "$T/large" --rows auto --split 5/30/rest --hidden 64 --epochs 30 --stop-after 2 --eval-every -1
    head -n 1 log | grep -q '"grid_reason":' || die "$(head -n 1 log)"
    head -n 1 log | grep -q '"rows":"needed"' || die "$(head -n 1 log)"
    train chooses-small 1 train "$T/few" --hidden 4 --epochs 2
    head -n 1 log | grep -q '"rows":"all"' || die "$(head -n 1 log)"
    # Options that are for all rows are not refused.
    for options in "--distribution vertex-cut" "--distribution vertex-cut --delay cd-2" "--order double --distribution 1d" \
        "--batches co:2" "--batches co:2 --max-hop 1" "--submodels 2"; do
        # shellcheck disable=SC2086
        train chooses-other 2 train "$T/large" --split 5/30/rest --hidden 8 --epochs 2 --eval-every -1 $options
        head -n 1 log | grep -q '"rows":"all"' || die "$options: $(head -n 1 log)"
    done
}

# Sums of features, made once, spare a hop. They are made where a step has needed rows, by choice or by option, and made in each
# step where it has all rows.
caches() {
    data=$SL_SHARED_DATA/amazon_photo
    [ -d "$data" ] || skip "no amazon_photo in ${SL_SHARED_DATA:-\$SL_SHARED_DATA}"
    for case in "auto needed true" "needed needed true" "all all false" "auto all false --split 90/5/5"; do
        # shellcheck disable=SC2086
        set -- $case
        asked=$1 rows=$2 cached=$3
        shift 3
        train caches 1 train "$data" --input-dropout 0 --epochs 200 --stop-after 1 --rows "$asked" "$@"
        head -n 1 log | grep -q "\"rows\":\"$rows\"" || die "$case: $(head -n 1 log)"
        head -n 1 log | grep -q "\"cache-aggregate\":$cached[,}]" || die "$case: sums are not $cached"
    done
    # Sums must save a tenth of a millisecond. Neighbours have the same words, so sums have fewer entries than at random.
    for case in "citeseer false" "musae_facebook true"; do
        # shellcheck disable=SC2086
        set -- $case
        train caches-words 1 train "$SL_SHARED_DATA/$1" --hidden 16 --input-dropout 0 --epochs 200 --stop-after 1
        head -n 1 log | grep -q '"rows":"needed"' || die "$case: $(head -n 1 log)"
        head -n 1 log | grep -q "\"cache-aggregate\":$2[,}]" || die "$case: sums are not $2"
    done
}

# Groups start from their training vertices.
groups() {
    # shellcheck disable=SC2086
    alike groups 5 "3:--groups_3x1 4:--groups_2x2_--distribution_cover" "$T/few" $few --layers 3
    for rows in all needed; do
        # shellcheck disable=SC2086
        train "groups-rows-$rows" 3 train "$T/few" $few --layers 2 --epochs 2 --groups 3x1 --rows $rows
        entries=$(head -n 1 log | sed 's/.*"inner_vertices".*"adjacency_entries":\[//; s/\].*//' | tr , '\n' |
            awk '{ sum += $1 } END { print sum }')
        [ "$rows" = needed ] || all=$entries
    done
    echo "$all entries of groups, $entries of needed rows"
    [ "$entries" -gt 0 ] && [ $((10 * entries)) -lt $((6 * all)) ] || die "as many rows in groups"
}

# A run that goes on computes the rows that it computed before.
resumes() {
    # shellcheck disable=SC2086
    set -- "$T/few" $few --rows needed --dropout 0.3
    train resumes 2 train "$@" --epochs 8
    train resumes-half 2 train "$@" --epochs 8 --stop-after 4
    train resumes-on 2 train "$T/few" --split 5/30/rest --resume "$T/resumes-half/ck" --epochs 8
    head -n 1 log | grep -q '"rows":"needed"' || die "$(head -n 1 log)"
    losses resumes | tail -n 4 >"$T/one"
    losses resumes-on | cmp "$T/one" - || die "other losses"
    # The tiles are left to the program, which takes others on other ranks.
    set -- "$T/large" --split 800/30/rest --hidden 64 --rows needed --eval-every 1 --distribution 1d --workers 1
    for case in 2:1 3:2; do
        before=${case%:*} after=${case#*:}
        train "resumes-tiles-$before" "$before" train "$@" --epochs 6
        train "resumes-half-$before" "$before" train "$@" --epochs 6 --stop-after 3
        train "resumes-on-$before" "$after" train "$T/large" --resume "$T/resumes-half-$before/ck" --epochs 6 --workers 1 \
            --split 800/30/rest --eval-every 1
        results log >"$T/two"
        results "$T/resumes-tiles-$before/log" | tail -n "$(wc -l <"$T/two")" >"$T/one"
        [ "$(wc -l <"$T/two")" -gt 9 ] || die "an empty log"
        diff "$T/one" "$T/two" || die "other results in $case"
    done
}

# Checkpoints and logs of programs without the option, and checkpoints and logs of needed rows that go on with an option for all
# rows, go on with all rows.
settles() {
    set -- --split 5/30/rest --hidden 8 --epochs 4 --eval-every 2
    train settles-all 1 train "$T/large" "$@" --rows all --stop-after 2
    train settles-whole 1 train "$T/large" "$@" --rows all
    train settles 1 train "$T/large" "$@" --stop-after 2
    head -n 1 log | grep -q '"rows":"needed"' || die "$(head -n 1 log)"
    sed 's/\\"rows\\":\\"all\\",/                 /; s/"crc32":"/"crc00":"/' "$T/settles-all/ck" >"$T/old"
    [ "$(wc -c <"$T/old")" -eq "$(wc -c <"$T/settles-all/ck")" ] || die "another size"
    ! grep -aq 'rows[^a-z]*all' "$T/old" || die "the checkpoint still has --rows"
    train settles-old 1 train "$T/large" "$@" --resume "$T/old"
    head -n 1 log | grep -q '"rows":"all"' || die "$(head -n 1 log)"
    losses settles-whole | tail -n 2 >"$T/one"
    losses settles-old | cmp "$T/one" - || die "other losses"
    sed 's/"rows":"needed",//' "$T/settles/log" >"$T/old.jsonl"
    for options in "--resume $T/settles/ck --distribution vertex-cut" "--resume $T/settles/ck --order double" \
        "--config $T/settles/log --distribution vertex-cut" "--config $T/old.jsonl"; do
        # shellcheck disable=SC2086
        train settles-on 2 train "$T/large" "$@" --stop-after 0 $options
        head -n 1 log | grep -q '"rows":"all"' || die "$options: $(head -n 1 log)"
    done
    train settles-log 1 train "$T/large" --config "$T/settles/log" --stop-after 0
    head -n 1 log | grep -q '"rows":"needed"' || die "$(head -n 1 log)"
}

refusals() {
    refused "--rows needed: --block-norm batch has the statistics of all rows" train "$T/few" --rows needed --model resgcn \
        --block-norm batch
    refused "--rows needed: --norm-layers batch has the statistics of all rows" train "$T/few" --rows needed --norm-layers batch
    refused "--rows needed: a sample" train "$T/few" --rows needed --groups 3x1 --max-hop 1
    refused "--rows needed: --batches has sets" train "$T/few" --rows needed --batches co:2
    refused "--rows needed: --batches has sets" train "$T/few" --rows needed --batches clusters:4,2
    refused "--rows needed: clones of few vertices" train "$T/few" --rows needed --distribution vertex-cut
    refused "--rows needed: --preload-hops" train "$T/few" --rows needed --groups 3x1 --preload-hops 1
    printf 'rows = "needed"\nbatches = "co:2"\n' >"$T/sets.toml"
    exits 2 plan "$T/few" --ranks 2 --config "$T/sets.toml"
    grep -q "^starling: --rows needed: --batches has sets" "$T/err" || die "$(cat "$T/err")"
    refused "expected another order with" train "$T/few" --rows needed --order double
    refused "--rows: expected one of: auto all needed" train "$T/few" --rows some
}

data
check "models" models
check "layers" layers
check "shapes" shapes
check "bits" bits
check "patience" patience
check "falls" falls
check "words" words
check "chooses" chooses
check "caches" caches
check "groups" groups
check "resumes" resumes
check "settles" settles
check "refusals" refusals
finish
