#!/bin/sh
# The library: examples, errors, weights, two trainings in a process, exported names, and the program's losses bit for bit.
# One line per case. Wants the programs of examples/ and tests/library, built.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
build=$(dirname "$STARLING")
source=${karate%/examples/karate}

# The losses of a log, as tests/library prints them.
log_losses() {
    sed -n 's/.*"epoch":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1"
}

# same_losses HOW RANKS DATASET NAME VALUE ...: of the library and of the program.
same_losses() {
    how=$1 ranks=$2 data=$3
    shift 3
    options=
    for word; do
        case $options in *" ") options="$options$word" ;; *) options="$options --$word " ;; esac
    done
    launch=
    [ "$ranks" -eq 1 ] || launch="$MPIRUN -n $ranks"
    # shellcheck disable=SC2086
    timeout 120 $launch "$build/tests/library" "$how" "$data" "$@" >"$T/library" 2>"$T/err" || die "library: $(cat "$T/err")"
    # shellcheck disable=SC2086
    timeout 120 $launch "$STARLING" train "$data" $options --log "$T/log" --quiet 2>"$T/err" || die "train: $(cat "$T/err")"
    grep -v test "$T/library" | awk '{ print $1, $2 + 0 == $2 ? sprintf("%.17g", $2) : $2 }' >"$T/ours"
    log_losses "$T/log" | awk '{ print $1, sprintf("%.17g", $2) }' >"$T/theirs"
    [ -s "$T/ours" ] || die "no losses"
    cmp "$T/ours" "$T/theirs" || die "other losses: $(paste "$T/ours" "$T/theirs" | head -3)"
    [ "$(sed -n 's/^test \([^ ]*\) .*/\1/p' "$T/library" | awk '{ printf "%.12f", $1 }')" = \
        "$(sed -n 's/.*"event":"end".*"test_accuracy":\([^,]*\),.*/\1/p' "$T/log" | awk '{ printf "%.12f", $1 }')" ] ||
        die "another accuracy: $(grep test "$T/library")"
}

data() {
    "$STARLING" generate community "$T/graph" --vertices 600 --classes 4 --degree 6 --features 20 --seed 3 >"$T/out"
}

# A model of the library goes on in the program as the program's own does: parameters, optimizer, late messages.
resumes() { # RANKS DISTRIBUTION DELAY
    launch=
    [ "$1" -eq 1 ] || launch="$MPIRUN -n $1"
    # shellcheck disable=SC2086
    SAVE=$T/a timeout 120 $launch "$build/tests/library" losses "$T/graph" epochs 20 patience 0 exact-epochs 0 tiles 3 \
        distribution "$2" delay "$3" >"$T/out" || die "library"
    # shellcheck disable=SC2086
    timeout 120 $launch "$STARLING" train "$T/graph" --epochs 20 --patience 0 --exact-epochs 0 --tiles 3 --distribution "$2" \
        --delay "$3" --checkpoint "$T/b" --quiet || die "train"
    for c in a b; do
        # shellcheck disable=SC2086
        timeout 120 $launch "$STARLING" train "$T/graph" --resume "$T/$c" --epochs 30 --log "$T/log.$c" --quiet || die "--resume $c"
    done
    [ "$(log_losses "$T/log.a")" = "$(log_losses "$T/log.b")" ] && [ -n "$(log_losses "$T/log.a")" ] || die "other losses"
}

# An example that prints its loss: the same bits on 1 and 2 ranks.
example_own() { # PROGRAM LEAST-ACCURACY
    timeout 120 "$build/examples/$1" "$karate" >"$T/one" 2>"$T/err" || die "status $?: $(cat "$T/err")"
    grep -q '^loss [0-9.e-]*, test accuracy [01]\.[0-9]*$' "$T/one" || die "$(cat "$T/one")"
    awk -v least="$2" '{ exit !($NF >= least) }' "$T/one" || die "learnt little: $(cat "$T/one")"
    [ -n "$MPIRUN" ] || return 0
    timeout 120 "$MPIRUN" -n 2 "$build/examples/$1" "$karate" >"$T/two" 2>"$T/err" || die "two ranks: status $?: $(cat "$T/err")"
    cmp "$T/one" "$T/two" || die "$(cat "$T/one" "$T/two")"
}

# A model of an own loss is refused where the loss has no name.
unknown_loss() {
    ! "$STARLING" train "$karate" --loss focal >"$T/out" 2>"$T/err" || die "it trained"
    sentence "--loss: expected one of: auto cross-entropy sigmoid mse bce bpr, not \"focal\"" "$T/err"
}

example_trains() {
    timeout 120 "$build/examples/train" "$karate" >"$T/out" || die "status $?"
    [ "$(grep -c '^epoch ' "$T/out")" -eq 50 ] || die "not 50 epochs: $(cat "$T/out")"
    grep -q '^test accuracy [01]\.[0-9]*, class of vertex 33: [01], a weight: ' "$T/out" || die "$(tail -n 1 "$T/out")"
    ! timeout 120 "$build/examples/train" "$T/absent" >"$T/out" 2>"$T/err" || die "an absent dataset"
    grep -q "^train: $T/absent: " "$T/err" || die "$(cat "$T/err")"
}

# MPI is the program's; the losses of 1 and 2 ranks are the same bits.
example_ranks() {
    timeout 120 "$MPIRUN" -n 1 "$build/examples/own_graph" >"$T/one" || die "one rank: status $?"
    timeout 120 "$MPIRUN" -n 2 "$build/examples/own_graph" >"$T/two" || die "two ranks: status $?"
    cmp "$T/one" "$T/two" || die "$(cat "$T/one" "$T/two")"
    grep -q '^loss [0-9.e-]*, test accuracy 0\.[5-9]\|1\.0' "$T/one" || die "$(cat "$T/one")"
}

everything() {
    mkdir -p "$T/files"
    timeout 300 "$build/tests/library" all "$karate" "$T/files" >"$T/out" 2>"$T/err" || die "status $?: $(cat "$T/out" "$T/err")"
    [ ! -s "$T/err" ] || die "on stderr: $(cat "$T/err")"
}

# Each call says as much as its own options; steps of a training and a prediction are noted.
talks() {
    "$STARLING" generate community "$T/few" --vertices 60 --quiet 2>"$T/err" || die "no graph"
    timeout 120 "$build/tests/library" talk "$T/few" >"$T/out" 2>"$T/err" || die "status $?: $(cat "$T/out" "$T/err")"
    [ "$(grep -c '^starling: .*making tiles: [0-9.]* s$' "$T/err")" -eq 2 ] || die "not two steps: $(cat "$T/err")"
    [ "$(tail -n 1 "$T/err")" = quiet ] || die "not quiet: $(cat "$T/err")"
}

# Options, a file of text and a log have points where the program has a locale with a comma.
comma() {
    command -v localedef >/dev/null 2>&1 || skip "no localedef to make a locale with a comma"
    mkdir -p "$T/locales" "$T/tables"
    localedef -i de_DE -f UTF-8 "$T/locales/de_DE.UTF-8" >"$T/out" 2>&1 || skip "localedef makes no locale: $(tail -n 1 "$T/out")"
    awk 'BEGIN { print "id,label,length,width"; for (v = 0; v < 40; v++) printf "%d,%d,%d.12345678901234567890,0.5\n", v, v % 3, v % 3 }' >"$T/tables/nodes.csv"
    awk 'BEGIN { for (v = 0; v < 40; v++) printf "%d,%d,1.25\n%d,%d,0.12345678901234567890\n", v, (v + 3) % 40, (v + 3) % 40, v }' >"$T/tables/edges.csv"
    for locale in C de_DE.UTF-8; do
        LOCPATH=$T/locales LC_ALL=$locale timeout 120 "$build/tests/library" losses "$T/tables" lr 0.0125 dropout 0.25 epochs 5 \
            split 30.5/30/39.5 normalize-features none log "$T/$locale.csv" >"$T/$locale" 2>"$T/err" || die "$locale: $(cat "$T/err")"
        cut -d , -f 1-8 "$T/$locale.csv" >"$T/$locale.scores"
    done
    grep -q '^5 [0-9]*,[0-9]' "$T/de_DE.UTF-8" || die "no comma: $(cat "$T/de_DE.UTF-8")"
    [ "$(tr , . <"$T/de_DE.UTF-8")" = "$(cat "$T/C")" ] || die "other losses: $(paste "$T/C" "$T/de_DE.UTF-8")"
    cmp "$T/C.scores" "$T/de_DE.UTF-8.scores" || die "another table: $(cat "$T/de_DE.UTF-8.csv")"
}

no_workers() {
    ! STARPU_NCPU=0 timeout 120 "$build/tests/library" losses "$karate" >"$T/out" 2>"$T/err" || die "it trained"
    grep -q '^library: StarPU does not start' "$T/err" || die "$(cat "$T/err")"
}

# Exactly the functions of the header.
exports() {
    command -v nm >/dev/null || skip "no nm"
    library=$build/.libs/libstarling.so
    [ -e "$library" ] || skip "no shared library"
    nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort >"$T/exported"
    grep -v '^#' "$source/include/starling.h" | tr '\n' ' ' | grep -o 'STARLING_API [^;{]*(' |
        sed 's/ *($//; s/(.*//; s/.*[ *]//' | sort >"$T/declared"
    [ "$(wc -l <"$T/declared")" -gt 30 ] || die "few names: $(cat "$T/declared")"
    cmp "$T/exported" "$T/declared" || die "$(diff "$T/exported" "$T/declared")"
    nm -D --defined-only "$library" | grep -q '@@STARLING_' || skip "no version script"
}

check "a dataset" data
check "exported names are those of the header" exports
check "examples/train" example_trains
check "examples/own_layer" example_own own_layer 0.7
check "examples/own_loss" example_own own_loss 0.7
check "examples/own_reducer" example_own own_reducer 0.7
check "a loss that nobody brought" unknown_loss
check "errors, callbacks, weights, files, predictions" everything
check "each call says as much as its options" talks
check "a locale with a decimal comma" comma
check "StarPU without workers is an error" no_workers
check "losses of a path" same_losses losses 1 "$T/graph" epochs 20 dropout 0.3
check "losses of arrays" same_losses arrays 1 "$karate" model sage epochs 15 tiles 3
check "losses with patience" same_losses losses 1 "$T/graph" epochs 60 patience 5 eval-every 1
check "a model goes on" resumes 1 1d cd-0
if [ -n "$MPIRUN" ]; then
    check "examples/own_graph" example_ranks
    check "losses on two ranks" same_losses losses 2 "$T/graph" epochs 12 tiles 4
    check "losses of arrays on three ranks" same_losses arrays 3 "$karate" epochs 12 distribution halo tiles 3
    check "a model goes on on two ranks" resumes 2 1d cd-0
    check "a model with late messages goes on" resumes 2 vertex-cut cd-2
    check "losses of a delay on two ranks" same_losses losses 2 "$T/graph" epochs 12 distribution vertex-cut delay cd-2
fi
finish
