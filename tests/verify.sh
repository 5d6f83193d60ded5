#!/bin/sh
# starling train --config LOG --verify: a run that repeats its log, and each thing that may differ.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
log=$T/run.jsonl
cp -r "$karate" "$T/data"
"$STARLING" train "$T/data" --epochs 12 --dropout 0.3 --eval-every 4 --log "$log" --quiet || exit 1

# repeats TEXT LOG ARGUMENT ...: the line that says so.
repeats() {
    text=$1 from=$2
    shift 2
    exits 0 train --config "$from" --verify "$@"
    grep -qxF "$text as in $from, bit for bit" "$T/out" || die "$(cat "$T/out")"
}

# differs TEXT LOG ARGUMENT ...: one sentence, and status 1.
differs() {
    text=$1 from=$2
    shift 2
    exits 1 train --config "$from" --verify "$@"
    sentence "$text" "$T/err"
    ! grep -q '^verified' "$T/out" || die "verified: $(cat "$T/out")"
}

refuses() { # TEXT ARGUMENT ...
    text=$1
    shift
    exits 2 train "$@"
    sentence "$text" "$T/err"
}

# edited NAME SCRIPT: a copy of the log, with one thing changed by sed.
edited() {
    sed "$2" "$log" >"$T/$1"
    ! cmp -s "$log" "$T/$1" || die "nothing is edited"
}

whole() {
    repeats "verified: 12 epochs and the weights" "$log"
    repeats "verified: 12 epochs and the weights" "$log" "$karate" --workers 1
    exits 0 train --config "$log" --verify --quiet
    [ ! -s "$T/out" ] || die "not quiet: $(cat "$T/out")"
}
killed() { # the log of a run that was killed while it wrote a line
    head -n 6 "$log" >"$T/killed"
    printf '{"event":"epoch","epoch":6,"lo' >>"$T/killed"
    repeats "verified: 5 epochs" "$T/killed"
}
stopped() {
    "$STARLING" train "$T/data" --epochs 12 --stop-after 7 --log "$T/stopped" --quiet || exit 1
    repeats "verified: 7 epochs and the weights" "$T/stopped"
}
early() {
    "$STARLING" train "$T/data" --epochs 200 --patience 5 --log "$T/early" --quiet || exit 1
    repeats "verified: $(grep -c '"epoch",' "$T/early") epochs and the weights" "$T/early"
}
other_loss() {
    edited loss '6s/"loss":0\./"loss":1./'
    differs "epoch 5: loss 0." "$T/loss"
}
other_score() {
    edited score '5s/"val_accuracy":[0-9.]*/"val_accuracy":0.25/'
    differs "epoch 4: val_accuracy " "$T/score"
}
other_weights() {
    edited weights 's/"weights":"./"weights":"x/'
    differs "after the last epoch: weights " "$T/weights"
}
more_epochs() {
    edited more '13p'
    differs "the run ends after epoch 12" "$T/more"
}
other_compiler() {
    edited compiler '6s/"loss":0\./"loss":1./; 1s/"compiler":"[^"]*"/"compiler":"1.0"/'
    differs 'in the log "1.0")' "$T/compiler"
}
other_data() {
    cp -r "$karate" "$T/other"
    printf '\001' | dd of="$T/other/labels.npy" bs=1 seek=128 conv=notrunc 2>/dev/null
    cmp -s "$karate/labels.npy" "$T/other/labels.npy" && die "nothing is edited"
    differs "the labels are not those of the run of $log" "$log" "$T/other"
}
goes_on() {
    "$STARLING" train "$T/data" --epochs 3 --checkpoint "$T/ck" --quiet || exit 1
    "$STARLING" train "$T/data" --resume "$T/ck" --epochs 5 --log "$T/later" --quiet || exit 1
    differs "the run of $T/later goes on after another one" "$T/later"
}

check "a run repeats its log" whole
check "the log of a killed run" killed
check "the log of a stopped run" stopped
check "the log of a run that stopped early" early
check "another loss" other_loss
check "another score" other_score
check "other weights" other_weights
check "an epoch too many in the log" more_epochs
check "another compiler" other_compiler
check "other data" other_data
check "a run that went on" goes_on
echo '{"hidden": 8}' >"$T/options.json"
check "options that are no log" differs "$T/options.json is no log" "$T/options.json" "$karate"
check "no log" refuses "--verify: expected --config LOG with it" "$karate" --verify
check "no dataset" refuses "an argument is missing" --config "$T/options.json" --verify
finish
