#!/bin/sh
# Every rank reads its part of a dataset and no more, and results do not show it. One line per case.
# Wants what tests/ranks.sh wants, and $top_builddir for the unit tests that run on several ranks, too.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="grid unit forms"

unit() { # RANKS TEST
    timeout 180 "$MPIRUN" -n "$1" "${top_builddir:-.}/tests/$2" >"$T/out" 2>&1 </dev/null || die "$(grep -v RUN "$T/out")"
    [ "$(grep -c 'PASSED' "$T/out")" -eq "$1" ] || die "$(cat "$T/out")"
}

# ---- Data ----

# Ten vertices around the first one, and twenty without an edge: the last rank has none of the edges.
star() {
    awk 'BEGIN { for (v = 1; v < 11; v++) printf "0 %d\n%d 0\n", v, v; print "30 30" }' | dataset "$T/star" 31 3
}

# $T/few: the features of $T/sparse, stored dense. One in five is not 0.
few() {
    cp -r "$T/directed" "$T/few"
    npy "$T/few/features.npy" '<f4' '(61, 10)' "$(awk 'BEGIN { for (v = 0; v < 61; v++) for (j = 0; j < 10; j++) {
        e = v && j == v % 5 ? 2 * v - 2 : v && j == 5 + v * v % 8 ? 2 * v - 1 : -1
        printf e < 0 ? "\\000\\000\\000\\000" : e % 3 ? "\\000\\000\\200\\077" : "\\000\\000\\100\\100" } }')"
    timeout 60 "$STARLING" info "$T/few" >"$T/out" 2>"$T/err" || die "$(cat "$T/err")"
    grep -q 'features  *10, CSR, 120 entries (19.67 %), bag of words' "$T/out" || die "$(cat "$T/out")"
    cd "$T" || exit 1
    for n in 1 2; do
        run $n train few --epochs 1 || die "$(cat err)"
        echo "starling: few: 20 % of the dense features are not 0: they count as CSR, as a bag of words whose rows are normalised" | cmp - err ||
            die "$n ranks: $(cat err)"
        grep -q -e '--normalize-features l2' out || die "$(cat out)"
    done
}

# ---- Cases ----

# What training makes of dense features that are read as CSR, other commands take, too.
few_elsewhere() {
    cd "$T" || exit 1
    train few-1 1 train "$T/few" --epochs 20 --tiles 4 --quiet
    train sparse-1 1 train "$T/sparse" --epochs 20 --tiles 4 --quiet
    results "$T/few-1/log" >"$T/one"
    results "$T/sparse-1/log" | diff "$T/one" - || die "other losses than of CSR"
    "$STARLING" convert "$T/few" "$T/stored" --quiet || die "convert"
    [ -e "$T/stored/features_indptr.npy" ] && [ ! -e "$T/stored/features.npy" ] || die "$(ls "$T/stored")"
    for data in few sparse stored; do
        run 2 predict ck "$T/$data" --output $data.ids.npy --probabilities $data.npy --quiet || die "$data: $(cat err)"
        cmp few.npy $data.npy || die "other predictions of $data"
        run 1 evaluate ck "$T/$data" --quiet || die "$data: $(cat err)"
        sed 1d out >$data.scores
        diff few.scores $data.scores || die "other scores of $data"
        run 1 plan "$T/$data" --ranks 2 || die "$data: $(cat err)"
        sed "s/$data/few/" out >$data.plan
        diff few.plan $data.plan || die "another plan of $data"
    done
    train none 1 train "$T/sparse" --epochs 10 --tiles 4 --quiet --normalize-features none
    train again 1 train "$T/few" --epochs 20 --tiles 4 --quiet --resume ../none/ck
    train all 1 train "$T/sparse" --epochs 20 --tiles 4 --quiet --normalize-features none
    results "$T/all/log" | tail -n 4 >"$T/one"
    results "$T/again/log" | tail -n 4 | diff "$T/one" - || die "other losses after --resume"
}

# Predictions come in the order of the vertices that the user knows.
stored() {
    "$STARLING" convert "$T/directed" "$T/ordered" --order random --seed 2 --quiet || exit 1
    train plain 1 train "$T/directed" --epochs 20 --tiles 4
    run 1 predict ck "$T/directed" --output p1.npy || die "$(cat err)"
    run 3 predict ck "$T/ordered" --tiles 6 --output p3.npy || die "$(cat err)"
    cmp p1.npy p3.npy || die "other predictions"
    grid ordered 3 "$T/ordered" --tiles 4 --epochs 30
}

balanced() {
    train rows 2 train "$T/star" --epochs 2 --tiles 2 --balance rows --distribution 1d
    train nnz 2 train "$T/star" --epochs 2 --tiles 2 --distribution 1d
    grep -q 'nonzeros, largest / mean: .* over 2 tiles, .* over 2 ranks' "$T/nnz/out" || die "$(cat "$T/nnz/out")"
    for balance in rows nnz; do
        sed -n 's/.*"imbalance":{"tiles":\([^,]*\),"ranks":\([^,]*\),"stages":.*/\1 \2/p' "$T/$balance/log" >"$T/$balance.figures"
    done
    paste "$T/nnz.figures" "$T/rows.figures" | awk '
        NF != 4 || $1 != $2 || $3 != $4 || $1 < 1 || $1 > 1.15 || $3 < 1.3 { print; bad = 1 }
        END { exit bad || NR != 1 }' || die "nnz, then rows: $(cat "$T"/nnz.figures "$T"/rows.figures)"
}

# Three ranks read the bytes of one, each a third, and need much less memory each.
thirds() {
    cd "$T" || exit 1
    "$STARLING" generate community large --vertices 50000 --degree 20 --classes 4 --features 256 --quiet || exit 1
    for ranks in 1 3; do
        train "large-$ranks" $ranks train "$T/large" --epochs 1 --tiles 6
        sed -n 's/.*"bytes_read":\[\([^]]*\)\].*/\1/p' log | tr ',' '\n' >"$T/bytes-$ranks"
        sed -n 's/.*"peak_memory_bytes":\([0-9]*\).*/\1/p' log >"$T/peak-$ranks"
    done
    [ "$(wc -l <"$T/bytes-3")" -eq 3 ] || die "not three ranks: $(cat "$T/bytes-3")"
    awk -v all="$(cat "$T/bytes-1")" '{ sum += $1; if (!($1 < all * 0.35)) bad = 1 }
        END { exit bad || sum < all * 0.99 || sum > all * 1.01 }' "$T/bytes-3" || die "$(cat "$T"/bytes-?)"
    awk -v one="$(cat "$T/peak-1")" '{ exit !($1 < 0.7 * one) }' "$T/peak-3" || die "$(cat "$T"/peak-?)"
}

damaged() {
    cp -r "$T/directed" "$T/damaged"
    printf '\075\000\000\000' | dd of="$T/damaged/indices.npy" bs=4 seek=$((32 + 240)) conv=notrunc 2>/dev/null
    refused "$T/damaged/indices.npy: row 60 has column 61, expected 0 to 60" train "$T/damaged"
    refused "$T/damaged/indices.npy: row 60 has column 61" train "$T/damaged" --order rcm
}

# Either form of the features, on two ranks that share the graph in any way: the same losses. With dense features, the sets
# of --batches co come in another order where these lie dense, too. Ways take turns at what lies in the files.
forms() {
    data=few
    for how in '--distribution 1d' '--grid 1x2x1' '--distribution vertex-cut' '--groups 2x1' '--groups 2x1 --input-dropout 0' \
        '--batches co:3' '--batches clusters:6,2 --distribution 1d' '--model gat' '--model gin'; do
        for form in csr dense; do
            # shellcheck disable=SC2086
            train "$form" 2 train "$T/$data" --epochs 4 --tiles 4 --normalize-features l1 --quiet --feature-form $form $how
        done
        echo "$how, $data"
        tolerance=1e-5 near csr dense 4
        [ $data = sparse ] && data=few || data=sparse
    done
    run 1 predict ck "$T/sparse" --tiles 2 --quiet --logits one.npy --output one.ids.npy || die "$(cat err)"
    run 2 predict ck "$T/few" --tiles 2 --quiet --logits two.npy --output two.ids.npy || die "$(cat err)"
    cmp one.npy two.npy || die "other logits"
}

if [ -x "${top_builddir:-.}/tests/test_parts" ]; then
    check 'cuts on 3 ranks' unit 3 test_partition
    check 'a selection trains as the whole graph on 3 ranks' unit 3 test_select_training
    for ranks in 2 3; do
        check "rows on $ranks ranks" unit $ranks test_parts
        check "arrays on $ranks ranks" unit $ranks test_parts_arrays
    done
fi
check 'a directed, weighted dataset out of an edge list' directed
check 'the same with CSR features' sparse
check 'the CSR features stored dense: a note' few
check 'the same: predict, evaluate, plan, convert, --resume' few_elsewhere
check 'the same: 1, 2 and 3 ranks, the same bits' grid few "2 3" "$T/few" --tiles 5 --epochs 30 --quiet
check 'the same, aggregated on the host, --order random' grid few-random 3 "$T/few" --tiles 4 --epochs 30 --quiet \
    --input-dropout 0 --order random
check 'CSR features made dense: 1 and 3 ranks, the same bits' grid made-dense 3 "$T/sparse" --tiles 5 --epochs 30 \
    --feature-form dense
check 'the same, aggregated, --order random' grid made-dense-random 3 "$T/sparse" --tiles 4 --epochs 30 --order random \
    --feature-form dense --input-dropout 0
check 'dense features made CSR' grid made-csr 2 "$T/directed" --tiles 5 --epochs 30 --feature-form csr
check 'both forms: distributions, groups, batches, models' forms
check 'a star and vertices without edges' star
check 'dense features, --order random: 1 and 3 ranks, the same bits' \
    grid random 3 "$T/directed" --tiles 5 --epochs 30 --order random
check 'dense features, --order rabbit, --balance rows' \
    grid rabbit 3 "$T/directed" --tiles 7 --epochs 30 --order rabbit --balance rows
check 'CSR features, --order double' grid double 3 "$T/sparse" --tiles 5 --epochs 30 --layers 3 --order double
check 'CSR features' grid csr 2 "$T/sparse" --tiles 5 --epochs 30
check 'CSR features, aggregated on the host' grid aggregated 3 "$T/sparse" --tiles 5 --epochs 30 --input-dropout 0
check 'CSR features, normalised, aggregated, --order random' grid aggregated-random 3 "$T/sparse" --tiles 4 \
    --epochs 30 --input-dropout 0 --order random --normalize-features l1
check 'identity features, --order rabbit' \
    grid identity 3 "$karate" --tiles 5 --epochs 30 --order rabbit --input-dropout 0
check 'GraphSAGE, mean: CSR features, their means kept' grid sage 2 "$T/sparse" --tiles 5 --epochs 30 --model sage \
    --input-dropout 0
check 'GraphSAGE, sum: dense features, --order rabbit' grid sage-sum 3 "$T/directed" --tiles 5 --epochs 30 --model sage \
    --aggregator sum --order rabbit --lr 0.001
check 'GraphSAGE, max: sparse features' grid sage-max 2 "$T/sparse" --tiles 5 --epochs 30 --model sage --aggregator max
check 'GraphSAGE, max: directed, 3 layers, one stage at a time' grid sage-max-stages 3 "$T/directed" --tiles 7 --epochs 30 \
    --model sage --aggregator max --layers 3 --no-overlap
check 'GraphSAGE, max: bfloat16' grid sage-max-narrow 3 "$T/directed" --tiles 7 --epochs 30 --model sage --aggregator max \
    --hidden 20 --precision bf16
check 'GraphSAGE of a rank whose rows have no edges' grid sage-edgeless 3 "$T/star" --tiles 3 --epochs 30 --balance rows \
    --model sage
check 'a rank whose rows have no edges' grid edgeless 3 "$T/star" --tiles 3 --epochs 30 --balance rows
check 'a tile for every vertex' grid tiles 3 "$T/star" --tiles 99 --epochs 30
check 'an ordered copy' stored
check 'nonzeros of tiles and ranks are told' balanced
check 'three ranks read a third each' thirds
check 'a damaged row: one sentence' damaged
finish
