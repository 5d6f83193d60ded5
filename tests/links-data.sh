#!/bin/sh
# Links of validation and test: what starling convert draws and keeps, what info says, and what is refused. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
cd "$T" || exit 1

# The pairs of a file of int64, a line each, in the vertices of original_ids.npy where the folder has it.
pairs() { # FOLDER ARRAY
    if [ -f "$1/original_ids.npy" ]; then
        od -An -v -t d8 -w8 -j128 "$1/original_ids.npy"
    else
        seq 0 9999
    fi >number
    od -An -v -t d8 -w16 -j128 "$1/$2.npy" | awk 'NR == FNR { number[n++] = $1; next } { print number[$1], number[$2] }' number -
}

arrays='val_links test_links val_negatives test_negatives'

karate_split() {
    exits 0 convert "$karate" k --split-edges 80/10/10 --eval-negatives 2
    [ "$(cat out)" = "k: 34 vertices, 128 adjacency entries, 7 validation links, 7 test links" ] || die "$(cat out)"
    exits 0 info k
    grep -qx "links          validation 7 with 14 negatives, test 7 with 14 negatives" out || die "$(cat out)"
    exits 0 info "$karate"
    ! grep '^links' out || die "links of a graph without any"
    exits 0 convert "$karate" again --split-edges 80/10/10 --eval-negatives 2 --quiet
    exits 0 convert "$karate" other --split-edges 80/10/10 --eval-negatives 2 --split-seed 1 --quiet
    for array in $arrays; do
        cmp "k/$array.npy" "again/$array.npy" || die "another draw"
        ! cmp -s "k/$array.npy" "other/$array.npy" || die "the same draw of another seed"
    done
}

round_trip() {
    exits 0 convert k copy
    grep -q ', 7 validation links, 7 test links$' out || die "$(cat out)"
    for file in k/*; do cmp "$file" "copy/${file#k/}" || die "another $file"; done
    for order in rabbit random; do
        exits 0 convert k "$order" --order "$order" --quiet
        exits 0 convert "$karate" "drawn-$order" --order "$order" --quiet
        exits 0 convert "drawn-$order" "split-$order" --split-edges 80/10/10 --eval-negatives 2 --quiet
        for array in $arrays; do
            pairs k "$array" >wanted
            for folder in "$order" "split-$order"; do
                pairs "$folder" "$array" >got
                diff wanted got || die "$array of $folder"
            done
        done
    done
}

# Users 0 to 4 come before items 5 to 11.
bipartite() {
    awk 'BEGIN { for (u = 0; u < 5; u++) for (i = 5; i < 12; i++) if ((u + i) % 3) print u, i }' >buys.txt
    exits 0 convert buys.txt buys --symmetrize --split-edges 50/25/25 --eval-negatives 5 --quiet
    for array in $arrays; do
        case $array in *links) edges=1 ;; *) edges=0 ;; esac
        pairs buys "$array" >got
        awk -v edges=$edges '$1 > 4 || $2 < 5 || (($1 + $2) % 3 > 0) != edges { bad = 1 } END { exit bad || NR < 5 }' got ||
            die "$array: $(cat got)"
    done
}

# Weights and relations of an edge list stay with their edges: the weight of u -> v is 10 u + v, its relation u % 3.
payload() {
    awk 'BEGIN { print "source,target,weight,r"; for (u = 0; u < 9; u++) for (v = 0; v < 9; v++) if ((u * v) % 4 == 1 || v == u + 1)
        printf "%d,%d,%d,%d\n", u, v, 10 * u + v + 1, u % 3 }' >typed.csv
    exits 0 convert typed.csv typed --edge-types r --split-edges 60/20/20 --quiet
    od -An -v -t d8 -w8 -j128 typed/indptr.npy >indptr
    od -An -v -t d4 -w4 -j128 typed/indices.npy >indices
    od -An -v -t f4 -w4 -j128 typed/weights.npy >weights
    od -An -v -t d4 -w4 -j128 typed/edge_types.npy >types
    paste indices weights types | awk 'NR == FNR { start[NR - 1] = $1; next }
        { while (start[row + 1] <= FNR - 1) row++; if ($2 != 10 * $1 + row + 1 || $3 != $1 % 3) exit 1; print $1, row }' indptr - >left ||
        die "weights or relations of other edges"
    { cat left; pairs typed val_links; pairs typed test_links; } | sort >union
    sed '1d; s/,/ /; s/,.*//' typed.csv | sort | diff - union || die "other edges"
}

files_without_links() {
    exits 0 convert k k.npz
    sentence "k.npz: links of validation and test are left out, expected a folder" err
    ! grep links out || die "$(cat out)"
}

refuse() { # STATUS SENTENCE ARGUMENT ...
    status=$1 said=$2
    shift 2
    rm -rf none
    exits "$status" convert "$@"
    sentence "$said" err
    [ ! -e none ] || die "left a folder"
}

refusals() {
    refuse 2 "--split-edges: k has val_links.npy already (expected no --split-edges)" k none --split-edges 80/10/10
    for rule in 80/10 80/10/11 0/50/50 20/30/rest x; do
        refuse 2 "--split-edges $rule: expected per cent that add up to 100, some of them to train, as 85/5/10" "$karate" none --split-edges "$rule"
    done
    refuse 2 "--eval-negatives" "$karate" none --split-edges 80/10/10 --eval-negatives 0
    printf '0 0\n' >loop.txt
    refuse 1 "loop.txt: --split-edges leaves no link to train on, of 0" loop.txt none --split-edges 80/10/10
    awk 'BEGIN { for (u = 1; u < 9; u++) print 0, u }' >star.txt
    refuse 1 "star.txt: vertex 0 is joined to nearly all" star.txt none --symmetrize --split-edges 50/25/25
}

wrong_files() {
    exits 0 convert "$karate" plain --quiet
    cp -r plain bad
    npy bad/val_links.npy '<i4' '(1, 2)' '\000\000\000\000\042\000\000\000'
    npy bad/val_negatives.npy '<i4' '(1, 2)' '\000\000\000\000\011\000\000\000'
    refuse 1 "bad/val_links.npy: row 0, column 1 is vertex 34, expected 0 to 33" bad none
    npy bad/val_links.npy '<i4' '(2,)' '\000\000\000\000\041\000\000\000'
    refuse 1 "bad/val_links.npy: expected a matrix of two columns, source and target" bad none
    rm bad/val_links.npy
    refuse 1 "bad/val_links.npy: is missing, expected links, since there is val_negatives.npy" bad none
    rm bad/val_negatives.npy
    npy bad/test_links.npy '<i4' '(1, 2)' '\000\000\000\000\041\000\000\000'
    refuse 1 "bad/test_negatives.npy: is missing, expected pairs that are no links, since there is test_links.npy" bad none
    exits 1 info bad
    sentence "bad/test_negatives.npy: is missing" err
}

check "convert --split-edges of karate, twice" karate_split
check "links stay through convert, in any order" round_trip
check "users come before items" bipartite
check "weights and relations stay with their edges" payload
check "files that hold no links" files_without_links
check "refusals" refusals
check "wrong files" wrong_files
finish
