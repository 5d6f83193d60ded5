#!/bin/sh
# A model meets datasets whose classes have other numbers than in its training: names decide, or a sentence says what does
# not fit. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1

# tables DIR CLASS ...: a ring of 60 vertices, each with one of the classes and the feature of its class alone.
tables() {
    mkdir "$T/$1"
    awk -v names="$(shift; echo "$*")" 'BEGIN {
        count = split(names, name, " ")
        print "id,cat,dog,fox,label,split"
        for (i = 0; i < 60; i++) {
            c = name[i % count + 1]
            print "v" i "," (c == "cat") "," (c == "dog") "," (c == "fox") "," c "," (i < 30 ? "train" : "test")
        }
    }' >"$T/$1/nodes.csv"
    awk 'BEGIN { print "source,target"; for (i = 0; i < 60; i++) for (k = 0; k < 6; k++) print "v" i ",v" (i + k * 6) % 60 }' \
        >"$T/$1/edges.csv"
}

tables three cat dog fox
tables two fox dog
tables other dog bird
sed 's/,label,split$//; /^v/s/,[a-z]*,[a-z]*$//' "$T/three/nodes.csv" >"$T/plain.csv"
mkdir "$T/unlabelled"
mv "$T/plain.csv" "$T/unlabelled/nodes.csv"
cp "$T/three/edges.csv" "$T/unlabelled"
for name in three two other; do
    "$STARLING" convert "$T/$name" "$T/$name.npy" >"$T/out" 2>&1 || { cat "$T/out"; exit 1; }
done
"$STARLING" train "$T/three" --epochs 60 --checkpoint "$T/ck" --quiet --workers 1 || exit 1

says() { # PATTERN: on stderr
    grep -q "$1" "$T/err" || die "expected $1 on stderr: $(cat "$T/err")"
}

# As text, and as numbers with names in meta.json.
fewer_classes() {
    for data in two two.npy; do
        exits 0 predict "$T/ck" "$T/$data" --table "$T/table" --workers 1
        grep -q 'test 1\.0000' "$T/out" || die "$data: $(cat "$T/out")"
        awk '{ want = NR % 2 ? "2\tfox" : "1\tdog"; if ($2 "\t" $3 != want) { print; exit 1 } }' "$T/table" || die "$data"
        exits 0 evaluate "$T/ck" "$T/$data" --json "$T/scores.json" --workers 1
        tr -d ' \n' <"$T/scores.json" | grep -q '"scores":{"accuracy":{"train":1.0,"val":null,"test":1.0}' ||
            die "$data: $(cat "$T/scores.json")"
    done
}

unlabelled() {
    exits 0 predict "$T/ck" "$T/unlabelled" --table "$T/table" --quiet --workers 1
    awk '{ if ($3 != (NR % 3 == 1 ? "cat" : NR % 3 == 2 ? "dog" : "fox")) { print; exit 1 } }' "$T/table" || die "other names"
}

unknown_class() {
    for data in other other.npy; do
        exits 1 predict "$T/ck" "$T/$data" --workers 1
        says 'class "bird" (expected .*: cat, dog, fox)'
        exits 1 train "$T/$data" --resume "$T/ck" --epochs 61 --workers 1
        says 'class "bird"'
    done
}

# One epoch more on a graph of two of the three classes: with other numbers of classes, no test vertex would be right.
resumed() {
    for data in two two.npy; do
        "$STARLING" train "$T/$data" --resume "$T/ck" --epochs 61 --log "$T/log" --quiet --workers 1 || die "$data"
        grep -q '"test_accuracy": *1\.0' "$T/log" || die "$data: $(grep '"end"' "$T/log")"
    done
}

features() {
    "$STARLING" train "$karate" --epochs 2 --checkpoint "$T/identity" --quiet --workers 1 || die "no model"
    exits 1 predict "$T/identity" "$T/three" --workers 1
    says 'trained without features'
    exits 1 predict "$T/ck" "$karate" --workers 1
    says 'trained with columns of features'
}

# arrays DIR NAMES COLUMNS ROWS: four vertices on a ring, with features, labels of several columns, and names of the columns.
arrays() {
    mkdir "$T/$1"
    printf '{"class_names": [%s]}\n' "$2" >"$T/$1/meta.json"
    npy "$T/$1/indptr.npy" '<i8' '(5,)' '\000\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0\002\0\0\0\0\0\0\0\003\0\0\0\0\0\0\0\004\0\0\0\0\0\0\0'
    npy "$T/$1/indices.npy" '<i4' '(4,)' '\001\0\0\0\002\0\0\0\003\0\0\0\000\0\0\0'
    npy "$T/$1/features.npy" '|u1' '(4, 1)' '\001\002\003\004'
    npy "$T/$1/labels.npy" '|u1' "(4, $3)" "$4"
    npy "$T/$1/train_idx.npy" '<i8' '(2,)' '\000\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0'
}

# Columns of labels keep their places: fewer of them, or others, are refused.
several() {
    arrays m3 '"a", "b", "c"' 3 '\001\0\0\001\001\0\0\001\001\0\0\001'
    arrays m2 '"a", "b"' 2 '\001\0\0\001\001\0\0\001'
    arrays turned3 '"b", "a", "c"' 3 '\001\0\0\001\001\0\0\001\001\0\0\001'
    exits 0 train "$T/m3" --epochs 2 --checkpoint "$T/m" --workers 1
    exits 0 predict "$T/m" "$T/m3" --workers 1
    for data in m2 turned3; do
        exits 1 predict "$T/m" "$T/$data" --workers 1
        says 'columns of labels of .* are others, or have another order'
        exits 1 train "$T/$data" --resume "$T/m" --epochs 3 --workers 1
        says 'columns of labels of .* are others, or have another order'
    done
}

# Names that a checkpoint cannot keep apart are left out of it.
odd_names() {
    tables latin "$(printf 'caf\351')" "$(printf 'caf\350')" tea
    exits 0 train "$T/latin" --epochs 60 --checkpoint "$T/latin.ck" --workers 1
    exits 0 evaluate "$T/latin.ck" "$T/latin" --workers 1
    arrays same '"a", "a", "c"' 3 '\001\0\0\001\001\0\0\001\001\0\0\001'
    exits 0 train "$T/same" --epochs 2 --checkpoint "$T/same.ck" --workers 1
    exits 0 predict "$T/same.ck" "$T/same" --workers 1
}

# Columns in another order, one less, and one more, as tables and as arrays.
columns() {
    mkdir "$T/turned" "$T/less" "$T/more"
    awk -F, -v OFS=, '{ print $1, $2, $4, $3, $5, $6 }' "$T/three/nodes.csv" >"$T/turned/nodes.csv"
    awk -F, -v OFS=, '{ print $1, $2, $3, $5, $6 }' "$T/three/nodes.csv" >"$T/less/nodes.csv"
    awk -F, -v OFS=, '{ print $1, $2, $3, $4, (NR == 1 ? "owl" : 0), $5, $6 }' "$T/three/nodes.csv" >"$T/more/nodes.csv"
    for data in turned less more; do
        cp "$T/three/edges.csv" "$T/$data"
        "$STARLING" convert "$T/$data" "$T/$data.npy" >"$T/out" 2>&1 || die "$(cat "$T/out")"
        for form in "$data" "$data.npy"; do
            exits 1 predict "$T/ck" "$T/$form" --workers 1
            case $data in
            turned) says "column 1 of the features of .* is fox, and the model's is dog" ;;
            less) says "column 2 of the features of .* is absent, and the model's is fox" ;;
            more) says "column 3 of the features of .* is owl, and the model's is absent" ;;
            esac
            exits 1 train "$T/$form" --resume "$T/ck" --epochs 61 --workers 1
            says "column [123] of the features"
        done
    done
    exits 0 predict "$T/ck" "$T/three.npy" --workers 1
}

# A byte of the first tensor becomes part of a NaN; a file without a checksum is read, too.
not_finite() {
    command -v python3 >/dev/null 2>&1 || skip "no python3"
    python3 - "$T/ck" "$T/nan" <<'PYTHON' || die "no file"
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + size])
del head["__metadata__"]["crc32"]
name = next(n for n in head if n.endswith("weight"))
body = bytearray(data[8 + size:])
at = head[name]["data_offsets"][0] + 4
body[at:at + 4] = struct.pack("<f", float("nan"))
text = json.dumps(head).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + body)
PYTHON
    exits 1 predict "$T/nan" "$T/three" --workers 1
    says 'has -*nan at row 0, column 1 (expected finite numbers)'
}

# without CHECKPOINT OUT MEMBER ...: a checkpoint whose "dataset" lacks members, as an older program wrote it.
without() {
    command -v python3 >/dev/null 2>&1 || skip "no python3"
    python3 - "$@" <<'PYTHON' || die "no file"
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + size])
del head["__metadata__"]["crc32"]
description = json.loads(head["__metadata__"]["description"])
for member in sys.argv[3:]:
    del description["dataset"][member]
head["__metadata__"]["description"] = json.dumps(description)
text = json.dumps(head).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
PYTHON
}

# Older programs read directed edges of files the other way round: their models do not meet such files without a word.
direction() {
    without "$T/ck" "$T/old" rows
    for command in predict evaluate; do
        exits 1 $command "$T/old" "$T/three" --workers 1
        says 'old: the model was trained when u aggregated from v .*three (expected a directory .*convert --reverse'
    done
    exits 1 train "$T/three" --resume "$T/old" --epochs 61 --workers 1
    says 'convert --reverse'
    exits 0 convert "$T/three" "$T/back" --reverse --quiet
    exits 0 evaluate "$T/old" "$T/back" --workers 1
    mkdir "$T/both" # an undirected graph has no direction
    cp "$T/three/nodes.csv" "$T/both"
    awk -F, -v OFS=, 'NR == 1 { print; next } { print $1, $2; print $2, $1 }' "$T/three/edges.csv" >"$T/both/edges.csv"
    exits 0 evaluate "$T/old" "$T/both" --workers 1
    exits 0 train "$T/three" --resume "$T/ck" --epochs 61 --quiet --workers 1
}

# raw DIR SCALE: vertices whose class decides about income and age, in a ring of classes; incomes in another currency.
raw() {
    mkdir "$T/$1"
    awk -v scale="$2" 'BEGIN {
        print "id,income,age,label,split"
        for (i = 0; i < 400; i++) {
            c = i % 2
            s = i % 7 == 6 ? "val" : i % 7 == 5 ? "test" : "train"
            print i "," (40000 + 15000 * c + i * 7919 % 20011) * scale "," 30 + 12 * c + i * 31 % 17 "," c "," s
        }
    }' >"$T/$1/nodes.csv"
    awk 'BEGIN { for (i = 0; i < 400; i++) { print i "," (i + 2) % 400; print (i + 2) % 400 "," i } }' >"$T/$1/edges.csv"
}

# score FILE: the test accuracy of a log.
score() {
    sed -n 's/.*"end".*"test_accuracy": *\([0-9.]*\).*/\1/p' "$1"
}

# What columns were standardised by is the model's, whatever the scale of another graph.
standard() {
    raw dollars 1
    raw cents 100
    exits 0 train "$T/dollars" --epochs 60 --checkpoint "$T/raw" --log "$T/log" --workers 1
    says "numbers of column 'income' of the features are about 5.*, of column 'age' about 4.*: all columns are standardised"
    grep -q -e '--normalize-features standard' "$T/out" || die "not chosen: $(cat "$T/out")"
    awk -v s="$(score "$T/log")" 'BEGIN { exit !(s > 0.9) }' || die "test accuracy $(score "$T/log")"
    exits 0 evaluate "$T/raw" "$T/dollars" --json "$T/scores.json" --workers 1
    tr -d ' \n' <"$T/scores.json" | grep -q "\"test\":$(score "$T/log")" || die "$(score "$T/log"), and $(cat "$T/scores.json")"
    exits 0 evaluate "$T/raw" "$T/cents" --json "$T/scores.json" --workers 1
    tr -d ' \n' <"$T/scores.json" | grep -q "\"test\":0.5" || die "the other graph's moments: $(cat "$T/scores.json")"
    exits 0 train "$T/dollars" --epochs 30 --checkpoint "$T/half" --quiet --workers 1
    exits 0 train "$T/dollars" --epochs 60 --resume "$T/half" --checkpoint "$T/whole" --quiet --workers 1
    exits 0 predict "$T/raw" "$T/dollars" --logits "$T/raw.npy" --quiet --workers 1
    exits 0 predict "$T/whole" "$T/dollars" --logits "$T/whole.npy" --quiet --workers 1
    cmp "$T/raw.npy" "$T/whole.npy" || die "resumed: other logits"
    for norm in none l2 auto; do
        exits 2 train "$T/dollars" --epochs 60 --resume "$T/half" --normalize-features $norm --workers 1
        says "normalize-features $norm: .*half has standard (expected the same)"
    done
    for list in means deviations; do
        without "$T/half" "$T/lists" feature_$list
        exits 1 evaluate "$T/lists" "$T/dollars" --workers 1
        says "standardises columns of features, and \"feature_$list\" of \"dataset\" is no list"
    done
    without "$T/half" "$T/lists" feature_means feature_deviations
    exits 1 predict "$T/lists" "$T/dollars" --workers 1
    says 'standardises columns of features'
    exits 1 train "$T/dollars" --resume "$T/lists" --epochs 60 --workers 1
    says 'standardises columns of features'
    exits 0 train "$T/dollars" --epochs 5 --normalize-features none --log "$T/log" --quiet --workers 1
    awk -v s="$(score "$T/log")" 'BEGIN { exit !(s < 0.7) }' || die "--normalize-features none: $(score "$T/log")"
}

# A table with zeros is a table, though most of it is 0: income, age and eight cities. Three vertices have neither income nor age.
zeros() {
    mkdir "$T/cities" "$T/poor"
    awk -F, -v OFS=, 'NR == 1 { print $0, "city"; next } { print $0, "city" NR % 8 }' "$T/dollars/nodes.csv" >"$T/cities/nodes.csv"
    sed 's/^\(9\|99\|199\),[0-9]*,[0-9]*,/\1,0,0,/' "$T/cities/nodes.csv" >"$T/poor/nodes.csv"
    for data in cities poor; do
        cp "$T/dollars/edges.csv" "$T/$data"
        exits 0 convert "$T/$data" "$T/$data.npy" --categorical city --quiet
        exits 0 train "$T/$data.npy" --epochs 60 --checkpoint "$T/$data.ck" --log "$T/log" --workers 1
        grep -q -e '--normalize-features standard' "$T/out" || die "$data: $(cat "$T/out")"
        awk -v s="$(score "$T/log")" 'BEGIN { exit !(s > 0.85) }' || die "$data: $(score "$T/log")"
    done
    exits 0 evaluate "$T/cities.ck" "$T/poor.npy" --workers 1
    ! grep -q 'bag of words' "$T/err" || die "$(cat "$T/err")"
}

# The norm does not depend on the form: neither is left to the rates of the machine.
forms() {
    exits 0 train "$T/dollars" --feature-form dense --epochs 2 --workers 1
    grep -q -e '--normalize-features standard' "$T/out" || die "dense: $(cat "$T/out")"
    exits 2 train "$T/dollars" --feature-form csr --epochs 2 --workers 1
    says 'csr: columns of .*dollars have scales over tenfold apart.*(expected --feature-form dense, or --normalize-features none)'
    exits 0 train "$T/dollars" --feature-form csr --normalize-features none --epochs 2 --workers 1
    for form in dense csr auto; do
        exits 0 train "$T/words.csr" --feature-form $form --epochs 2 --workers 1
        grep -o -e '--normalize-features [a-z0-9]*' "$T/out" >>"$T/norms"
    done
    [ "$(sort -u "$T/norms" | wc -l)" -le 1 ] || die "$(cat "$T/norms")"
}

# csr FROM TO: the same directory with its features in CSR.
csr() {
    command -v python3 >/dev/null 2>&1 || skip "no python3"
    cp -r "$1" "$2"
    rm "$2/features.npy"
    python3 - "$1/features.npy" "$2" <<'PYTHON' || die "no features"
import struct, sys
data = open(sys.argv[1], "rb").read()
at = 10 + struct.unpack("<H", data[8:10])[0]
columns = int(data[10:at].decode().split("shape': (")[1].split(",")[1].split(")")[0])
x = struct.unpack("<%df" % ((len(data) - at) // 4), data[at:])
starts, places = [0], [k for k in range(len(x)) if x[k]]
for row in range(len(x) // columns):
    starts.append(starts[-1] + sum(1 for v in x[row * columns:(row + 1) * columns] if v))
def write(name, kind, code, values):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,)}" % (kind, len(values))
    head += " " * (117 - len(head)) + "\n"
    with open(sys.argv[2] + "/" + name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%d%s" % (len(values), code), *values))
write("features_indptr.npy", "<i8", "q", starts)
write("features_indices.npy", "<i4", "i", [k % columns for k in places])
write("features_data.npy", "<f4", "f", [x[k] for k in places])
PYTHON
}

# Sparse features are standardised on request, row by row, and a model of dense ones takes sparse ones.
sparse() {
    exits 0 convert "$T/dollars" "$T/dense" --quiet
    csr "$T/dense" "$T/words.csr"
    sed -i 's/"dense"/"csr"/' "$T/words.csr/meta.json"
    for more in "" "--batches co:4" "--no-cache-aggregate"; do
        for data in dense words.csr; do
            # shellcheck disable=SC2086
            exits 0 train "$T/$data" --normalize-features standard --epochs 5 --dropout 0 --checkpoint "$T/$data.ck" --log "$T/log.$data" \
                --quiet --workers 1 $more
            sed -n 's/.*"loss": *\([0-9.]\{6\}\).*/\1/p' "$T/log.$data" >"$T/losses.$data"
        done
        cmp "$T/losses.dense" "$T/losses.words.csr" || die "$more: $(cat "$T/losses.dense" "$T/losses.words.csr")"
    done
    for data in dense words.csr; do
        exits 0 predict "$T/dense.ck" "$T/$data" --logits "$T/$data.npy" --quiet --workers 1
    done
    cmp "$T/dense.npy" "$T/words.csr.npy" || die "other logits"
}

# The same bits on each number of ranks, and the same numbers from files and from memory.
standard_elsewhere() {
    [ -n "$MPIRUN" ] || skip "no MPI"
    exits 0 convert "$T/dollars" "$T/stored" --quiet
    for r in 1 3; do
        "$MPIRUN" -n $r "$STARLING" train "$T/stored" --epochs 3 --tiles 6 --distribution 1d --workers 1 --log "$T/log.$r" --quiet \
            --split 60/20/20 --checkpoint "$T/ranks.$r" || die "$r ranks"
        sed -n 's/.*"loss": *\([0-9.e-]*\).*/\1/p' "$T/log.$r" >"$T/losses.$r"
    done
    cmp "$T/losses.1" "$T/losses.3" || die "$(cat "$T/losses.1" "$T/losses.3")"
    for cache in cache no-cache; do # read from memory, and row by row from the files
        for data in dollars cents; do
            exits 0 train "$T/$data" --epochs 3 --batches co:4 --dropout 0 --$cache-aggregate --log "$T/log.$data" --quiet --workers 1
            sed -n 's/.*"loss": *\([0-9.]\{5\}\).*/\1/p' "$T/log.$data" >"$T/losses.$data"
        done
        cmp "$T/losses.dollars" "$T/losses.cents" || die "$cache: $(cat "$T/losses.dollars" "$T/losses.cents")"
    done
}

# prices DIR STEP COUNT: the label is a whole number, one of COUNT.
prices() {
    mkdir "$T/$1"
    awk -v step="$2" -v count="$3" 'BEGIN {
        print "id,x,price,split"
        for (i = 0; i < 400; i++) print i "," i % 13 "," (i % count) * step "," (i % 3 ? "train" : "test")
    }' >"$T/$1/nodes.csv"
    cp "$T/dollars/edges.csv" "$T/$1"
    exits 0 convert "$T/$1" "$T/$1.stored" --label price
}

# Whole numbers of many values are no classes, unless --loss says so.
whole_numbers() {
    prices dear 10 300
    says '300 different whole numbers of 400 vertices are numbers to predict'
    prices cheap 10 90
    ! grep -q 'numbers to predict' "$T/err" || die "90 classes: $(cat "$T/err")"
    exits 0 train "$T/dear.stored" --epochs 2 --workers 1
    grep -q -e '--loss mse' "$T/out" || die "no regression: $(cat "$T/out")"
    exits 0 train "$T/cheap.stored" --epochs 2 --workers 1
    grep -q ' 891 classes' "$T/out" || die "no classes: $(cat "$T/out")"
    exits 0 train "$T/dear.stored" --loss cross-entropy --epochs 2 --checkpoint "$T/dear.ck" --workers 1
    grep -q ' 2991 classes' "$T/out" || die "no classes: $(cat "$T/out")"
    exits 0 evaluate "$T/dear.ck" "$T/dear.stored" --json "$T/scores.json" --workers 1
    grep -q '"accuracy"' "$T/scores.json" || die "$(cat "$T/scores.json")"
    sed -i '2s/,0,train/,0.5,train/;2s/,0,test/,0.5,test/' "$T/dear/nodes.csv"
    exits 0 convert "$T/dear" "$T/fraction" --label price --quiet
    exits 2 train "$T/fraction" --loss cross-entropy --epochs 2 --workers 1
    says 'has numbers to predict (expected --loss mse'
}

check "fewer classes" fewer_classes
# gaps DIR WORD: whole numbers of 260 values, and 40 vertices with a word instead.
gaps() {
    mkdir "$T/$1"
    awk -v word="$2" 'BEGIN {
        print "id,x,label,split"
        for (i = 0; i < 400; i++) print i "," i % 13 "," (i % 10 ? (i % 260) * 10 : word) "," (i % 3 ? "train" : "test")
    }' >"$T/$1/nodes.csv"
    cp "$T/dollars/edges.csv" "$T/$1"
}

# Where whole numbers become numbers to predict, -1 is no label, in tables and in arrays.
no_number() {
    command -v python3 >/dev/null 2>&1 || skip "no python3"
    gaps minus -1
    gaps empty ""
    exits 0 convert "$T/minus" "$T/minus.npy"
    says '234 different whole numbers of 360 vertices are numbers to predict, no classes; 40 are -1, no label'
    cp -r "$T/minus.npy" "$T/array"
    sed -i 's/"regression": true/"x": 0/; s/"classes": 1/"y": 0/' "$T/array/meta.json"
    python3 - "$T/array/labels.npy" <<'PYTHON' || die "no labels"
import struct, sys
data = open(sys.argv[1], "rb").read()
at = 10 + struct.unpack("<H", data[8:10])[0]
labels = [-1.0 if x != x else x for x in struct.unpack("<400f", data[at:])]
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (400,)}"
head += " " * (117 - len(head)) + "\n"
open(sys.argv[1], "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<400f", *labels))
PYTHON
    for data in minus empty array; do
        exits 0 train "$T/$data" --epochs 3 --log "$T/log.$data" --workers 1
        says 'numbers to predict, no classes'
        sed -n 's/.*"loss": *\([0-9.e-]*\).*/\1/p' "$T/log.$data" >"$T/losses.$data"
        cmp "$T/losses.minus" "$T/losses.$data" || die "$data: $(cat "$T/losses.minus" "$T/losses.$data")"
    done
    says '; 40 are -1, no label'
    exits 0 train "$T/array" --loss cross-entropy --epochs 2 --workers 1
    ! grep -q 'numbers to predict' "$T/err" || die "--loss cross-entropy: $(cat "$T/err")"
}

# A model that predicts numbers takes targets of few values, too.
few_numbers() {
    gaps many -1
    exits 0 train "$T/many" --epochs 3 --checkpoint "$T/many.ck" --workers 1
    mkdir "$T/few"
    cp "$T/many/edges.csv" "$T/few"
    awk -F, -v OFS=, 'NR > 1 { $3 = NR % 10 ? NR % 7 : -1 } { print }' "$T/many/nodes.csv" >"$T/few/nodes.csv"
    exits 0 predict "$T/many.ck" "$T/few" --quiet --workers 1
    exits 0 evaluate "$T/many.ck" "$T/few" --json "$T/scores.json" --workers 1
    sed '2,$s/,-1,/,,/' "$T/few/nodes.csv" >"$T/many/nodes.csv"
    exits 0 evaluate "$T/many.ck" "$T/many" --json "$T/unknown.json" --workers 1
    for file in scores unknown; do
        tr -d ' \n' <"$T/$file.json" | sed 's/.*"scores":{\([^}]*}[^}]*}\).*/\1/' >"$T/$file"
    done
    grep -q '[0-9]' "$T/scores" || die "no scores: $(cat "$T/scores.json")"
    cmp "$T/scores" "$T/unknown" || die "$(cat "$T/scores" "$T/unknown")"
    exits 0 train "$T/few" --resume "$T/many.ck" --epochs 4 --workers 1
}

check "directed edges of an older checkpoint" direction
check "columns of other scales" standard
check "a table with zeros" zeros
check "sparse columns of other scales" sparse
check "the norm in both forms" forms
check "columns of other scales, on ranks and in batches" standard_elsewhere
check "whole numbers of many values" whole_numbers
check "whole numbers and no label" no_number
check "whole numbers of few values for a regression" few_numbers
check "an unlabelled graph" unlabelled
check "an unknown class" unknown_class
check "resumed with fewer classes" resumed
check "features and the identity" features
check "several labels" several
check "names that cannot be told apart" odd_names
check "columns" columns
check "a number that is not finite" not_finite
finish
