#!/bin/sh
# What crosses between groups in a training step, counted where MPI is given it (tests/count_payloads.c): sums and parameters
# alone, and with --preload-hops 1 the rows of outer vertices, both ways, for each layer that is refreshed. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
COUNTED=${top_builddir:-.}/tests/counted
case $COUNTED in /*) ;; *) COUNTED=$PWD/$COUNTED ;; esac
[ -x "$COUNTED" ] || { echo "no tests/counted"; exit 77; }
PLAIN=$STARLING
SL_COUNTS=counts
export SL_COUNTS

data() {
    "$PLAIN" generate community "$T/small" --vertices 300 --classes 4 --degree 5 --features 24 --seed 3 >"$T/out" &&
        "$PLAIN" generate community "$T/other" --vertices 500 --classes 4 --degree 8 --features 24 --seed 4 >"$T/out" ||
        die "$(cat "$T/out")"
    cd "$T" || exit 1
    "$PLAIN" partition small --method metis --parts 2 >out 2>&1 || die "$(cat out)"
    [ -s small-metis-2.npy ] || die "no parts: $(ls)"
}

# numbers FILE BYTES: of an array of signed integers (.npy).
numbers() {
    od -An -v -w"$2" -t "d$2" -j $((10 + $(od -An -j 8 -N 2 -t u2 "$1"))) "$1"
}

# How many vertices the vertices of both parts have as neighbours in the other one.
outer() {
    { numbers small-metis-2.npy 4 | sed 's/^/part /'; numbers small/indptr.npy 8 | sed 's/^/first /'
        numbers small/indices.npy 4 | sed 's/^/to /'; } | awk '
        $1 == "part" { part[vertices++] = $2 }
        $1 == "first" { first[rows++] = $2 }
        $1 == "to" { to[entries++] = $2 }
        END { for (v = 0; v < vertices; v++)
                  for (e = first[v]; e < first[v + 1]; e++)
                      if (part[to[e]] != part[v] && !((part[v], to[e]) in seen)) { seen[part[v], to[e]]; count++ }
              print count + 0 }'
}

# counted NAME EPOCHS OPTION ...: four ranks in two groups; "FROM TO BYTES" of all payloads between the groups, in $T/NAME.
counted() {
    name=$1 length=$2
    shift 2
    STARLING=$COUNTED
    rm -rf "${T:?}/run"
    train run 4 train "$@" --groups 2x2 --epochs "$length" --eval-every 1000000 --workers 1
    STARLING=$PLAIN
    [ "$(ls counts.* | wc -l)" -eq 4 ] || die "not 4 counts: $(ls)"
    cat counts.* | awk '$1 == "payload" && ($2 < 2) != ($3 < 2) { print $2, $3, $5 }' >"$T/$name"
    cd "$T" || exit 1
}

# crossing OPTION ...: those of a step, "FROM TO BYTES", one pair a line: two epochs more make two steps more.
crossing() {
    counted short 1 "$@"
    counted long 3 "$@"
    { sed 's/^/-1 /' short; sed 's/^/1 /' long; } | awk '
        { sum[$2 " " $3] += $1 * $4 }
        END { for (pair in sum) if (sum[pair]) print pair, sum[pair] / 2 }' | sort
}

# Parameters of a GCN of 3 layers, 12 wide, and 16 doubles of metrics: from group to group, and back.
sums=$((4 * (24 * 12 + 12 + 12 * 12 + 12 + 12 * 4 + 4) + 128))

exact() {
    for graph in small other; do
        crossing "$T/$graph" --layers 3 --hidden 12 --dropout 0.3 >"$T/seen" || exit 1
        printf '0 2 %d\n2 0 %d\n' $sums $sums >"$T/wanted"
        diff "$T/wanted" "$T/seen" || die "other words on $graph"
    done
}

# Sums of normalised columns: as many words on another graph, from first rank to first rank.
columns() {
    for graph in small other; do
        crossing "$T/$graph" --model resgcn --layers 3 --hidden 12 --block-norm batch >"$T/seen-$graph" || exit 1
    done
    cut -d ' ' -f 1,2 "$T/seen-small" | tr '\n' ',' | grep -qx '0 2,2 0,' || die "$(cat "$T/seen-small")"
    diff "$T/seen-small" "$T/seen-other" || die "words depend on the graph"
}

# Two of three layers are refreshed, and their gradients come back.
refreshed() {
    crossing "$T/small" --layers 3 --hidden 12 --dropout 0.3 --preload-hops 1 --partition "$T/small-metis-2.npy" >"$T/seen" ||
        exit 1
    seen=$(awk '{ sum += $3 } END { print sum }' "$T/seen")
    rows=$(outer)
    wanted=$((2 * sums + 2 * 2 * rows * 12 * 4))
    echo "$rows outer vertices: $seen bytes between groups, $wanted of sums and their rows"
    [ "$rows" -gt 20 ] && [ "$seen" -eq "$wanted" ] || die "other words"
}

check "data" data
check "exact groups: sums alone" exact
check "exact groups: normalised columns" columns
check "copies that are refreshed: rows of outer vertices" refreshed
finish
