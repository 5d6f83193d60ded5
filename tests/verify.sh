#!/bin/sh
# starling train --config LOG --verify: a run that repeats its log, and each thing that may differ.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
log=$T/run.jsonl
cp -r "$karate" "$T/data"
"$STARLING" train "$T/data" --epochs 12 --dropout 0.3 --eval-every 4 --log "$log" --quiet || exit 1

# repeats TEXT LOG ARGUMENT ...: the line that says so; what is not compared is in $but.
but=
repeats() {
    text=$1 from=$2
    shift 2
    exits 0 train --config "$from" --verify "$@"
    grep -qxF "$text as in $from, bit for bit$but" "$T/out" || die "$(cat "$T/out")"
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
    but='; the log has no weights'
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
    differs "the end: weights " "$T/weights"
}
more_epochs() {
    edited more '13p'
    differs "the run ends after epoch 12" "$T/more"
}
other_end() {
    edited end '$s/"test_accuracy":[0-9.]*/"test_accuracy":0.125/'
    differs "the end: test_accuracy " "$T/end"
}
score_too_many() {
    edited f1 '5s/"loss"/"val_f1":0.5,"loss"/'
    differs "epoch 4: val_f1 none, in the log 0.5" "$T/f1"
}
damaged() {
    edited middle '6s/"loss":/"lo/'
    differs "$T/middle: line 6 is damaged" "$T/middle"
    edited last '$s/"weights":/"we/'
    differs "$T/last: line 14 is damaged" "$T/last"
}
no_hashes() {
    edited hashes '1s/"hashes":{[^}]*}/"others":{}/'
    but='; the log has no hashes of the data'
    repeats "verified: 12 epochs and the weights" "$T/hashes"
}
other_options() {
    for option in "--seed 1" "--keep last" "--eval-every -1" "--epochs 20" "--checkpoint-every 3"; do
        # shellcheck disable=SC2086
        exits 2 train --config "$log" --verify $option
        sentence "${option%% *}: the log says it" "$T/err"
    done
    exits 2 train --config "$log" --verify --plan
    sentence "--verify: expected no --plan with it" "$T/err"
    exits 2 train "$karate" --config "$log" --verify --resume "$T/none"
    sentence "--verify: expected no --resume with it" "$T/err"
    mkfifo "$T/pipe" || skip "no pipes"
    exits 2 train --config "$T/pipe" --verify
    sentence "is no regular file" "$T/err"
}
# Runs of other kinds repeat their logs, too.
kinds() {
    "$STARLING" generate community "$T/graph" --vertices 300 --classes 4 --degree 6 --features 8 --seed 3 --quiet || exit 1
    for options in "--batches co:3" "--layers 3 --submodels 2 --local-steps 2" "--layers 3 --submodels 2 --share none" \
        "--task links --split-edges 80/10/10" "--metric macro-f1 --patience 3" "--model sage --aggregator max --tiles 3"; do
        # shellcheck disable=SC2086
        "$STARLING" train "$T/graph" --epochs 6 --log "$T/kind" --quiet $options || die "$options"
        repeats "verified: $(grep -c '"epoch",' "$T/kind") epochs and the weights" "$T/kind"
    done
}
on_ranks() {
    [ -n "$MPIRUN" ] || skip "no MPI"
    [ -d "$T/graph" ] || "$STARLING" generate community "$T/graph" --vertices 300 --classes 4 --degree 6 --features 8 --quiet
    timeout 100 $MPIRUN -n 2 "$STARLING" train "$T/graph" --epochs 6 --tiles 4 --distribution 1d --log "$T/two" --quiet || exit 1
    timeout 100 $MPIRUN -n 2 "$STARLING" train --config "$T/two" --verify >"$T/out" || die "$(cat "$T/out")"
    grep -qxF "verified: 6 epochs and the weights as in $T/two, bit for bit" "$T/out" || die "$(cat "$T/out")"
    repeats "verified: 6 epochs and the weights" "$T/two" # 1D
    sed '4s/"loss":1\./"loss":2./; 4s/"loss":0\./"loss":2./' "$T/two" >"$T/unlike"
    timeout 100 $MPIRUN -n 2 "$STARLING" train --config "$T/unlike" --verify >"$T/out" 2>"$T/err" && die "$(cat "$T/out")"
    grep -q '^starling: --verify: other than in .*, epoch 3: loss ' "$T/err" || die "$(cat "$T/err")"
    # Ranks whose logs differ: rank 0 has the word.
    head -n 4 "$T/two" >"$T/short"
    timeout 100 $MPIRUN -n 1 "$STARLING" train --config "$T/two" --verify : -n 1 "$STARLING" train --config "$T/short" --verify \
        >"$T/out" || die "$(cat "$T/out")"
    grep -q '^verified: 6 epochs' "$T/out" || die "$(cat "$T/out")"
}
other_compiler() {
    edited compiler '6s/"loss":0\./"loss":1./; 1s/"compiler":"[^"]*"/"compiler":"1.0"/'
    differs 'in the log "1.0")' "$T/compiler"
}
other_tiles() {
    differs "(tiles 3, in the log " "$log" --tiles 3
}
other_data() {
    cp -r "$karate" "$T/other"
    printf '\001' | dd of="$T/other/labels.npy" bs=1 seek=128 conv=notrunc 2>/dev/null
    cmp -s "$karate/labels.npy" "$T/other/labels.npy" && die "nothing is edited"
    differs "the labels are not those of the run of $log" "$log" "$T/other"
    "$STARLING" generate community "$T/some" --vertices 60 --classes 3 --degree 4 --features 5 --quiet || exit 1
    "$STARLING" train "$T/some" --epochs 2 --log "$T/some.log" --quiet || exit 1
    for array in features indices; do
        rm -rf "$T/other"
        cp -r "$T/some" "$T/other"
        printf '\001' | dd of="$T/other/$array.npy" bs=1 seek=132 conv=notrunc 2>/dev/null
        cmp -s "$T/some/$array.npy" "$T/other/$array.npy" && die "nothing is edited"
        exits 1 train "$T/other" --config "$T/some.log" --verify
        [ $array = indices ] || sentence "the features are not those of the run of" "$T/err"
    done
}
goes_on() {
    "$STARLING" train "$T/data" --epochs 3 --checkpoint "$T/ck" --quiet || exit 1
    "$STARLING" train "$T/data" --resume "$T/ck" --epochs 5 --log "$T/later" --quiet || exit 1
    differs "the run of $T/later goes on after another one" "$T/later"
}

saved_often() { # checkpoints add evaluations
    "$STARLING" train "$T/data" --epochs 9 --eval-every 4 --checkpoint-every 3 --checkpoint "$T/often.ck" --log "$T/often" --quiet ||
        exit 1
    [ "$(grep -c '"val_accuracy"' "$T/often")" -eq 6 ] || die "not 5 evaluations and the end: $(cat "$T/often")"
    rm "$T/often.ck"
    repeats "verified: 9 epochs and the weights" "$T/often"
    [ ! -e "$T/often.ck" ] || die "a checkpoint was written"
}
continued() { # a log of two runs
    "$STARLING" train "$T/data" --epochs 4 --checkpoint "$T/ck" --log "$T/twice" --quiet || exit 1
    "$STARLING" train "$T/data" --resume "$T/ck" --epochs 6 --log "$T/twice" --quiet || exit 1
    differs "line 7 of $T/twice begins another run (expected a log of one run, without --resume)" "$T/twice"
}

check "a run repeats its log" whole
check "a run with checkpoints on the way" saved_often
check "a log of two runs" continued
check "the log of a killed run" killed
check "the log of a stopped run" stopped
check "the log of a run that stopped early" early
check "another loss" other_loss
check "another score" other_score
check "other weights" other_weights
check "an epoch too many in the log" more_epochs
check "another score at the end" other_end
check "a score too many in the log" score_too_many
check "a damaged log" damaged
check "a log without hashes" no_hashes
check "options that the log says" other_options
check "runs of other kinds" kinds
check "two ranks" on_ranks
check "another compiler" other_compiler
check "other tiles" other_tiles
check "other data" other_data
check "a run that went on" goes_on
echo '{"hidden": 8}' >"$T/options.json"
check "options that are no log" differs "$T/options.json is no log" "$T/options.json" "$karate"
check "no log" refuses "--verify: expected --config LOG with it" "$karate" --verify
check "no dataset" refuses "an argument is missing" --config "$T/options.json" --verify
finish
