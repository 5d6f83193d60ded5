#!/bin/sh
# Which weights a run keeps (--keep), and that all it tells of them is of one epoch. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
command -v python3 >/dev/null 2>&1 || { echo "no python3 to read logs"; exit 77; }

cat >"$T/kept.py" <<'PYTHON'
"""kept.py LOG SCORES WHICH: the log's end and the checkpoint's scores are those of the best epoch, or of the last."""
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
end, scores, which = events[-1], json.load(open(sys.argv[2]))["scores"]["accuracy"], sys.argv[3]
epochs = {e["epoch"]: e for e in events if e["event"] == "epoch"}
every = next(e["configuration"]["eval-every"] for e in events if e["event"] == "start")
seen = [e for e in epochs.values() if "val_accuracy" in e and (e["epoch"] % every == 0 or e["epoch"] == end["epochs"])]
best = max(seen, key=lambda e: (e["val_accuracy"], -e["epoch"]))
kept = best if which == "best" else epochs[end["epochs"]]
assert end["kept_epoch"] == kept["epoch"], (end["kept_epoch"], kept["epoch"])
assert end["best_epoch"] == best["epoch"], (end["best_epoch"], best["epoch"])
assert abs(end["loss"] - kept["loss"]) < 1e-12, (end["loss"], kept["loss"])
for split in "val", "test":
    name = split + "_accuracy"
    assert name not in kept or abs(end[name] - kept[name]) < 1e-12, (split, end[name], kept[name])
for split in "train", "val", "test":
    assert abs(scores[split] - end[split + "_accuracy"]) < 1e-12, (split, scores[split], end)
# An epoch between is kept, or nothing would be tested.
assert which == "last" or 1 < kept["epoch"] < end["epochs"], kept["epoch"]
PYTHON

graph() {
    "$STARLING" generate community "$T/graph" --vertices 800 --classes 4 --degree 5 --features 8 --homophily 0.4 --seed 3 >"$T/out" ||
        exit 1
    cp -r "$T/graph" "$T/unseen" && rm "$T/unseen/val_idx.npy"
}

# kept WHICH RANKS OPTION ...: the log, the checkpoint and the closing table.
kept() {
    cd "$T" || exit 1
    which=$1
    shift
    rm -f log ck
    ranks=$1
    shift
    run "$ranks" train graph --epochs 40 --eval-every 3 --lr 0.05 --hidden 8 --workers 1 --log log --checkpoint ck "$@" || die "$(cat err)"
    "$STARLING" evaluate ck graph --json scores.json --quiet || die "no scores"
    python3 kept.py log scores.json "$which" || die "not the $which epoch: $*"
    epoch=$(sed -n 's/.*"kept_epoch":\([0-9]*\).*/\1/p' log)
    if [ "$which" = best ]; then
        grep -q "^the weights of epoch $epoch, the best one, are kept$" out || die "not told: $(cat out)"
    else
        ! grep -q 'are kept' out || die "told: $(cat out)"
    fi
}

# The same bits as a run that did not end, from the last state on; the best epoch may be of the first run.
resumed() {
    cd "$T" || exit 1
    set -- train graph --eval-every 3 --lr 0.05 --hidden 8 --seed 5
    "$STARLING" "$@" --epochs 60 --checkpoint whole --log whole.log --quiet || die "no run"
    "$STARLING" "$@" --epochs 37 --checkpoint part --log part.log --quiet || die "no run"
    "$STARLING" train graph --resume part --epochs 60 --checkpoint part --log part.log --quiet || die "not resumed"
    for log in whole part; do
        grep '"event": *"epoch"' $log.log | sed 's/.*"loss": *\([^,]*\),.*/\1/' >$log.losses
        tail -n 1 $log.log | grep -oE '"(kept_epoch|test_accuracy|loss)":[0-9.e-]+' >$log.end
    done
    cmp -s whole.losses part.losses || die "other losses"
    cmp -s whole.end part.end || die "another end: $(cat whole.end part.end)"
    [ "$(sed -n 's/"kept_epoch"://p' part.end)" -lt 37 ] || die "nothing was kept over the end of the first run"
    for model in whole part; do "$STARLING" predict $model graph --logits $model.npy --quiet || die "no logits"; done
    cmp -s whole.npy part.npy || die "other weights are kept"
}

# Before its first evaluation, and where no validation vertex has a label, a run has its last weights.
none_best() {
    cd "$T" || exit 1
    "$STARLING" train graph --epochs 40 --stop-after 2 --checkpoint ck --log log --quiet || die "no run"
    tail -n 1 log | grep -q '"best_epoch":0,"kept_epoch":2,' || die "$(tail -n 1 log)"
    ! grep -q 'layer.0.weight.best' ck || die "weights of no epoch are saved"
    "$STARLING" train graph --epochs 5 --log log --quiet || die "no run"
    tail -n 1 log | grep -q '"best_epoch":5,"kept_epoch":5,' || die "the last epoch is not the best one: $(tail -n 1 log)"
    "$STARLING" train unseen --epochs 20 --log log --quiet || die "no validation vertices"
    grep -q '"keep": *"last"' log || die "the best epoch of no validation vertices"
    tail -n 1 log | grep -q '"best_epoch":0,"kept_epoch":20,' || die "$(tail -n 1 log)"
}

# A run whose keep best nobody asked for goes on where there is no best epoch, with the last weights.
goes_on_without() {
    cd "$T" || exit 1
    "$STARLING" train graph --epochs 12 --eval-every 3 --checkpoint first --quiet || die "no run"
    "$STARLING" train unseen --resume first --epochs 15 --log log >out 2>err || die "refused: $(cat err)"
    grep -q 'first: there is no validation split, so the last weights are kept' err || die "no note: $(cat err)"
    tail -n 1 log | grep -q '"kept_epoch":15,' || die "$(tail -n 1 log)"
    "$STARLING" train graph --resume first --epochs 15 --eval-every -1 --log log >out 2>err || die "refused: $(cat err)"
    grep -q 'first: --eval-every -1 measures none, so the last weights are kept' err || die "no note: $(cat err)"
    tail -n 1 log | grep -q '"kept_epoch":15,' || die "$(tail -n 1 log)"
    exits 2 train unseen --resume first --epochs 15 --keep best
    sentence "--keep best: unseen has no validation split" "$T/err"
    "$STARLING" train graph --resume first --epochs 15 --log log --quiet || die "no run"
    grep '"event": *"start"' log | tail -n 1 | grep -q '"keep": *"best"' || die "the best weights are not kept any more"
}

# broken RANKS: numbers of a later epoch are not finite. The best weights are saved all the same, and a run goes on with them.
broken() {
    cd "$T" || exit 1
    rm -f ck none log whole.log
    ranks=$1
    set -- "$ranks" train "$karate" --lr 100 --optimizer sgd --eval-every 2 --epochs 90 --tiles 3
    run "$@" --checkpoint ck && die "no breakdown"
    best=$(sed -n 's/.*the output is not finite .*; ck has the weights of epoch \([0-9]*\), the best one$/\1/p' err)
    [ -n "$best" ] && [ "$best" -gt 2 ] || die "not the best epoch after some others: $(cat err)"
    run "$@" --stop-after "$best" --keep last --checkpoint whole || die "$(cat err)"
    for model in whole ck; do "$STARLING" predict $model "$karate" --logits $model.npy --quiet || die "no logits"; done
    cmp whole.npy ck.npy || die "not the weights of epoch $best"
    run "$ranks" train "$karate" --resume ck --lr 0.01 --epochs $((best + 4)) --log log || die "$(cat err)"
    grep -q "\"first_epoch\":$((best + 1))," log || die "another beginning: $(head -n 1 log)"
    run "$ranks" train "$karate" --resume whole --lr 0.01 --epochs $((best + 4)) --log whole.log || die "$(cat err)"
    for log in whole.log log; do grep '"event": *"epoch"' $log | sed -n '1s/.*"loss": *\([^,]*\),.*/\1/p' >$log.loss; done
    cmp log.loss whole.log.loss || die "another loss" # later ones have another state of the optimizer
    # A newer checkpoint of the run stays.
    run "$@" --checkpoint-every 20 --checkpoint ck && die "no breakdown"
    grep -q '; ck holds epoch 40$' err || die "the newer checkpoint is gone: $(cat err)"
    run "$@" --keep last --checkpoint none && die "no breakdown"
    grep -q '; none was not written$' err || die "the last weights: $(cat err)"
}

planned() {
    cd "$T" || exit 1
    for keep in best last; do
        exits 0 train graph --plan --hidden 4096 --keep $keep
        sed -n 's/^  parameters *//p' "$T/out" >$keep
        exits 0 plan graph --ranks 2 --hidden 4096 --keep $keep
        awk '$1 == "halo" { print $(NF - 1) }' "$T/out" >$keep.plan
    done
    # Weights, two moments, and the best ones: 4 shares instead of 3.
    paste best last | awk '{ exit !($1 > 1.3 * $2) }' || die "the kept copy is not planned: $(paste best last)"
    paste best.plan last.plan | awk '{ exit !($1 > $2) }' || die "... by starling plan: $(paste best.plan last.plan)"
}

refuses() {
    cd "$T" || exit 1
    text=$1
    shift
    exits 2 train "$@"
    sentence "$text" "$T/err"
}

graph || exit 1
check "the best epoch" kept best 1
check "... with patience" kept best 1 --patience 30
check "the last epoch" kept last 1 --keep last
check "... with patience" kept last 1 --keep last --patience 30
check "the best epoch of batches" kept best 1 --batches co:2
check "... of sub-models" kept best 1 --submodels 2 --epochs 80
check "... of a vertex-cut on two ranks" kept best 2 --distribution vertex-cut
check "... of groups" kept best 2 --groups 2x1
check "... of sub-models on two ranks" kept best 2 --submodels 2 --groups 2x1 --epochs 80
check "an ensemble" kept last 1 --submodels 2 --share none --epochs 80
check "a run that goes on" resumed
check "no best epoch" none_best
check "a run that goes on without a best one" goes_on_without
check "the best weights of a run that breaks down" broken 1
check "... on two ranks" broken 2
check "the memory plan" planned
check "no validation split" refuses "--keep best: unseen has no validation split" unseen --keep best
check "no evaluations" refuses "--eval-every -1: expected --keep last" graph --eval-every -1 --keep best
check "the best of an ensemble" refuses "expected --keep last" graph --submodels 2 --share none --keep best
finish
