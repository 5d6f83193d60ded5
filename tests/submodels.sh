#!/bin/sh
# Sub-models: one is plain training, groups have the bits of one rank, runs that go on have the same bits, and evaluations by
# blocks are those of starling predict. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike="resumes groups alone wide predicts_ensemble words refuses shards blocks interrupted full_checkpoint"
XDG_CACHE_HOME=$T/cache
export XDG_CACHE_HOME
"$STARLING" generate community "$T/small" --vertices 300 --classes 4 --degree 6 --features 20 --seed 3 >"$T/out" ||
    die "$(cat "$T/out")"
fixed="--tiles 6 --order none" whole=
shards=${top_builddir:-.}/tests/test_store blocks=${top_builddir:-.}/tests/test_blocked_evaluation
case $shards in /*) ;; *) shards=$PWD/$shards blocks=$PWD/$blocks ;; esac

# The tensors of a checkpoint, without the header.
tensors() { # FILE
    tail -c +$((9 + $(od -An -t u8 -N 8 "$1"))) "$1"
}

# Fail unless two checkpoints have the same tensors.
same_data() { # FILE FILE
    tensors "$1" >"$T/one"
    tensors "$2" >"$T/two"
    [ "$(wc -c <"$T/one")" -gt 1000 ] || die "no tensors in $1"
    cmp "$T/one" "$T/two" || die "other tensors in $2 than in $1"
}

# Fail unless they differ: a case that compares nothing would pass.
other_data() { # FILE FILE
    tensors "$1" >"$T/one"
    tensors "$2" | cmp -s - "$T/one" && die "the same tensors in $1 and $2"
    return 0
}

# One sub-model has everything, whatever a round is.
alone() { # NAME OPTION ...
    name=$1
    shift
    set -- "$T/small" --hidden 12 --epochs 6 --dropout 0.3 "$@"
    train "$name-plain" 1 train "$@"
    for steps in 1 3; do
        train "$name-$steps" 1 train "$@" --submodels 1 --local-steps $steps
        same_data "$T/$name-plain/ck" ck
        losses "$name-plain" >"$T/one"
        losses "$name-$steps" | cmp - "$T/one" || die "other losses"
    done
}

# groups NAME "RANKS:OPTIONS ..." OPTION ...: the bits of one rank; _ stands for a space.
groups() {
    name=$1 all=$2
    shift 2
    # shellcheck disable=SC2086
    set -- "$T/small" --hidden 14 --dropout 0.2 $fixed "$@"
    train "$name-1" 1 train "$@"
    for groups in $all; do
        # shellcheck disable=SC2046
        train "$name-$groups" "${groups%%:*}" train "$@" $(echo "${groups#*:}" | tr _ ' ')
        same_data "$T/$name-1/ck" ck
    done
}

# With one step in a round, an epoch sends blocks there and back, and metrics there and back. Of two sub-models, each takes
# the half of the store that the other rank has: three numbers for each parameter of 20 x 7 + 7 and 7 x 4 + 4. Parts of
# three are the same in all rounds here.
words() { # RANKS WORDS OPTION ...
    on=$1 wanted=$2
    shift 2
    train words-$on "$on" train "$T/small" $fixed --submodels "$on" --groups "${on}x1" --distribution 1d "$@"
    words=$(head -n 1 log | sed -n 's/.*"submodels":{"count":'$on',"local_steps":1,"words_per_round":\([0-9]*\)[,}].*/\1/p')
    [ "$words" = "${wanted:-$words}" ] || die "$(head -n 1 log)"
    bytes=$(tail -n 1 log | sed -n 's/.*"between":{[^}]*"bytes_per_step":\([0-9]*\).*/\1/p')
    [ "$bytes" = $((4 * words + 2 * (on - 1) * 128)) ] || die "$bytes bytes: $(tail -n 1 log)"
}

# Shards of some rows: blocks against loops over entries, trainings against one rank.
shards() { # RANKS
    cd "$T" || exit 1
    timeout 300 "$MPIRUN" -n "$1" "$shards" "$T/shards-$1" || die "exit status $?"
}

# Logits by blocks are those of the whole network on the same ranks, and travelling parameters take what is planned.
blocks() { # RANKS
    cd "$T" || exit 1
    timeout 300 "$MPIRUN" -n "$1" "$blocks" ranks >out 2>err || die "exit status $?: $(cat out err)"
}

# Scaled sums are other sums, but of one sub-model.
scaled() {
    for count in 1 2; do
        train published-$count 1 train "$T/small" --hidden 14 --epochs 8 $fixed --submodels $count
        train scaled-$count 1 train "$T/small" --hidden 14 --epochs 8 $fixed --submodels $count --unit-sums scaled
    done
    same_data "$T/published-1/ck" "$T/scaled-1/ck"
    other_data "$T/published-2/ck" "$T/scaled-2/ck"
}

# An ensemble of one has the accuracies of the network and its tensors. Behind them are the last biases, each member's own.
ensemble_of_one() {
    set -- "$T/small" --hidden 12 --epochs 6 --eval-every 2
    train one-plain 1 train "$@" --keep last
    train one-ensemble 1 train "$@" --submodels 1 --share none
    tensors "$T/one-plain/ck" >"$T/one"
    tensors ck | head -c "$(wc -c <"$T/one")" | cmp - "$T/one" || die "other parameters"
    results "$T/one-plain/log" >"$T/one"
    [ "$(grep -c val_accuracy "$T/one")" -ge 3 ] || die "no accuracies"
    sed 's/"at_best".*//' log >"$T/log"
    results "$T/log" | diff "$T/one" - || die "other accuracies"
    best=$(sed -n 's/.*"best_epoch":\([0-9]*\),.*/\1/p' "$T/one-plain/log")
    grep -q "\"members\":\[{[^]]*\"best_epoch\":$best}\]" log || die "not best in epoch $best: $(tail -n 1 log)"
}

# starling predict has the accuracies of an ensemble's last weights, on other ranks too.
predicts_ensemble() { # NAME RANKS OPTION ...
    name=$1 on=$2
    shift 2
    train "predicts-$name" "$on" train "$T/small" --hidden 13 --layers 3 --epochs 18 --submodels 3 --share none "$@"
    accuracies=$(sed -n 's/.*"event":"end",\(.*\)"loss".*/\1/p' log | grep -oE '"(train|val|test)_accuracy":[0-9.]+' | sort)
    echo "$accuracies" | tr '\n' ' ' | awk -F '[: ]' '{ exit !(NF > 5 && $2 > 0.2 && $4 > 0.2 && $6 > 0.2) }' || die "$accuracies"
    for ranks in 1 2; do
        run $ranks predict ck "$T/small" || die "$(cat err)"
        echo "$accuracies" | tr '\n' ' ' | awk -F '[: ]' '{ printf "accuracy: training %.4f, validation %.4f, test %.4f\n", $4, $6, $2 }' \
            >"$T/one"
        grep accuracy out | diff "$T/one" - || die "other accuracies on $ranks ranks"
    done
    run 1 predict ck "$T/small" --embeddings e.npy && die "embeddings of all members"
    sentence "--embeddings: ck has an ensemble" err
}

# Members are evaluated on the whole graph, by all ranks.
ensemble_with_clusters() {
    set -- "$T/small" --hidden 12 --epochs 8 --submodels 2 --share none --batches clusters:6,3 --eval-every 1
    train ensemble-1 1 train "$@"
    train ensemble-4 4 train "$@" --groups 2x2 --distribution halo
    within 1e-3 near ensemble-1 ensemble-4 4
    grep -q '"val_accuracy":0\.[1-9]' log || die "$(cat log)"
    for ranks in 1 4; do
        sed -n 's/.*"at_best"://p' "$T/ensemble-$ranks/log" | grep -oE '"[a-z_]+":[0-9.]+' >"$T/best-$ranks"
    done
    [ "$(wc -l <"$T/best-1")" -eq 11 ] || die "not two members and an ensemble: $(cat "$T/best-1")"
    paste -d : "$T/best-1" "$T/best-4" | awk -F : '
        { d = $2 - $4; if (d < 0) d = -d
          if (!($1 == $3 && d <= 0.03)) { print; bad = 1 } }
        END { exit bad }' || die "other members at their best"
}

# Batches, halo and groups: the losses of one rank to rounding. Parts of the graph are the same.
mixed() {
    set -- "$T/small" --hidden 12 --epochs 6 --submodels 2 --local-steps 2 --batches clusters:6,3
    train mixed-1 1 train "$@"
    train mixed-4 4 train "$@" --groups 2x2 --distribution halo
    within 1e-3 near mixed-1 mixed-4 3
}

# resumes NAME RANKS OPTION ...: stopped inside a round, after 4 epochs, and between rounds, after 6.
resumes() {
    name=$1 on=$2
    shift 2
    # shellcheck disable=SC2086
    set -- "$T/small" --hidden 13 --dropout 0.2 --submodels 2 --local-steps 3 --epochs 18 $fixed "$@"
    train "$name-once" "$on" train "$@"
    for after in 4 6; do
        train "$name-$after" "$on" train "$@" --stop-after $after
        # shellcheck disable=SC2086
        run "$on" train "$T/small" --resume ck --checkpoint ck2 --epochs 18 $groups || die "$(cat err)"
        same_data "$T/$name-once/ck" ck2
        other_data ck ck2
    done
}

resumes_ensemble() {
    set -- "$T/small" --hidden 13 --dropout 0.2 --submodels 2 --share none $fixed
    train ensemble-once 1 train "$@" --epochs 18
    train ensemble-part 1 train "$@" --epochs 8
    run 1 train "$T/small" --resume ck --checkpoint ck2 --epochs 18 || die "$(cat err)"
    same_data "$T/ensemble-once/ck" ck2
    other_data ck ck2
}

# A program that stops for three quarters of the time on rank 1.
slow() {
    cat >"$T/slow" <<'EOF'
#!/bin/sh
if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 1 ]; then
    while sleep 0.01 && kill -STOP $$ 2>/dev/null; do
        sleep 0.03
        kill -CONT $$ 2>/dev/null || break
    done >/dev/null 2>&1 &
fi
exec "$STARLING" "$@"
EOF
    chmod +x "$T/slow"
}

# Measured shares: fewer units where ranks are slower. They are in the log and the checkpoint: who gives them, or goes on, has
# the same bits.
shares() {
    slow
    export STARLING
    set -- "$T/wide" --hidden 200 --local-steps 2 --submodels 2 --groups 2x1 --distribution 1d $fixed --eval-every -1
    fast=$STARLING
    STARLING=$T/slow
    sed -i "s|\"\$STARLING\"|\"$fast\"|" "$T/slow"
    tries=0
    until
        train shares-auto 2 train "$@" --epochs 12 --submodel-share auto --stop-after 3
        found=$(head -n 1 log | sed -n 's/.*"submodel-share":"\([0-9,]*\)".*/\1/p')
        echo "$found" | awk -F, '{ exit !(NF == 2 && $1 == 100 && $2 > 0 && $2 < 80) }'
    do
        [ $((tries += 1)) -lt 3 ] || skip "shares $found: a busy machine hides the slow group"
    done
    STARLING=$fast
    train shares-given 2 train "$@" --epochs 12 --submodel-share "$found"
    run 2 train "$T/wide" --resume "$T/shares-auto/ck" --checkpoint ck2 --epochs 12 --groups 2x1 || die "$(cat err)"
    same_data ck ck2
    run 2 train "$T/wide" --resume "$T/shares-auto/ck" --checkpoint ck2 --epochs 12 --submodel-share 1,1 --groups 2x1 &&
        die "went on with other shares"
    sentence "--submodel-share is another one than in the checkpoint" err
}

# An ensemble is one round, which measuring does not use up.
ensemble_shares() {
    train shares-ensemble 2 train "$T/small" --hidden 12 --submodels 2 --groups 2x1 --distribution 1d --eval-every -1 --epochs 8 \
        --submodel-share auto --share none
    grep -q '"submodel-share":"[0-9,]*"\|"submodel-share":"equal"' log || die "$(head -n 1 log)"
}

# A run that the user stops, wherever it is, goes on with the same bits.
interrupted() { # SUB-MODELS OPTION ...
    set -- "$T/small" --hidden 13 --submodels "$@" --local-steps 100 --eval-every 500
    mkdir -p "$T/interrupted"
    cd "$T/interrupted" || exit 1
    rm -f log
    "$STARLING" train "$@" --epochs 300000 --checkpoint ck --log log >out 2>err </dev/null &
    background=$!
    tries=0
    until [ "$(cat log 2>/dev/null | grep -c '"event":"epoch"')" -gt 4 ] || [ $((tries += 1)) -gt 300 ]; do
        sleep 0.1
    done
    kill -TERM $background || die "ended too early: $(cat out err)"
    wait $background
    background=
    last=$(head -c 4000 ck | tr ',' '\n' | sed -n 's/.*\\"epoch\\":\([0-9]*\).*/\1/p' | tail -n 1)
    [ "$last" -gt 1 ] || die "not stopped: $(cat out err)"
    epochs=$(($5 * (last + 150)))
    run 1 train "$T/small" --resume ck --checkpoint ck2 --epochs $epochs || die "$(cat err)"
    train interrupted-once 1 train "$@" --epochs $epochs
    echo "stopped after epoch $last"
    same_data ck "$T/interrupted/ck2"
}

# The store is a file: the same bits.
stored() {
    set -- "$T/small" --hidden 13 --submodels 3 --local-steps 2 --epochs 12
    mkdir -p "$T/dir"
    train stored-memory 1 train "$@"
    train stored-file 1 train "$@" --store "$T/dir"
    same_data "$T/stored-memory/ck" ck
    train stored-files 2 train "$@" --store "$T/dir" --groups 2x1 --distribution 1d
    train stored-memories 2 train "$@" --groups 2x1 --distribution 1d
    same_data ck "$T/stored-files/ck"
    [ -z "$(ls -A "$T/dir")" ] || die "left: $(ls -A "$T/dir")"
    cd "$T" || exit 1
    run 1 train "$@" --store "$T/none" && die "exit status 0 without the directory"
    sentence "$T/none" err
}

full() {
    mkdir -p "$T/full"
    mount -t tmpfs -o size=64k none "$T/full" 2>/dev/null || skip "no tmpfs here"
    cd "$T" || exit 1
    run 1 train "$T/small" --hidden 2048 --submodels 2 --epochs 2 --store "$T/full"
    status=$?
    umount "$T/full"
    [ $status -gt 0 ] && [ $status -lt 128 ] || die "exit status $status: $(cat out err)"
    sentence "$T/full" err
}

# A disk has room for one checkpoint, and no more: the first one stays, training goes on, and the last one is elsewhere.
full_checkpoint() { # RANKS
    mkdir -p "$T/full"
    mount -t tmpfs -o size=128k none "$T/full" 2>/dev/null || skip "no tmpfs here"
    cd "$T" || exit 1
    TMPDIR=$T run "$1" train "$T/small" --hidden 256 --submodels 2 --local-steps 4 --epochs 10 --checkpoint-every 2 \
        --checkpoint "$T/full/ck" --store "$T"
    status=$?
    cp full/ck first
    umount "$T/full"
    [ $status -eq 1 ] || die "exit status $status: $(cat out err)"
    elsewhere=$(sed -n 's/.*; the model is in \(.*\)/\1/p' err | tail -n 1)
    [ -n "$elsewhere" ] || die "$(cat err)"
    run 1 train "$T/small" --resume first --checkpoint ck2 --epochs 10 || die "$(cat err)"
    same_data "$elsewhere" ck2
    other_data first ck2
}

# Killed while a checkpoint is written: the one before is whole.
killed() {
    mkdir -p "$T/killed"
    cd "$T/killed" || exit 1
    "$STARLING" train "$T/small" --hidden 20000 --submodels 2 --local-steps 3 --epochs 4000 --checkpoint-every 1 --eval-every -1 \
        --checkpoint ck --store "$T" >out 2>err </dev/null &
    background=$!
    tries=0
    until [ -s ck ] && [ "$(find . -name '*ck*' -size +2000k | wc -l)" -gt 1 ]; do
        [ $((tries += 1)) -lt 1000 ] || die "never in mid-write: $(ls -la; cat out err)"
        sleep 0.02
    done
    kill -KILL $background
    wait $background
    background=
    ls -A1 >names
    [ "$(grep -c ck names)" -gt 1 ] || echo "(killed behind the write)"
    last=$(head -c 4000 ck | tr ',' '\n' | sed -n 's/.*epoch\\":\([0-9]*\).*/\1/p' | tail -n 1)
    run 1 train "$T/small" --resume ck --checkpoint ck2 --epochs $((2 * last + 4)) || die "$(cat err)"
    other_data ck ck2
}

# Accuracies of the last evaluation of a training are those of starling predict, which is not by blocks. Hidden matrices have
# over 64 MiB.
wide() { # NAME RANKS OPTION ...
    name=$1 on=$2
    shift 2
    cd "$T" || exit 1
    [ -d wide ] || "$STARLING" generate community wide --vertices 24000 --classes 5 --degree 4 --features 12 --seed 5 >out ||
        die "$(cat out)"
    [ -d skew ] || "$STARLING" generate rmat skew --scale 14 --edge-factor 4 --classes 4 --features 8 --seed 3 >out ||
        die "$(cat out)"
    train "wide-$name" "$on" train "$T/${graph:-wide}" --submodels 4 --epochs 4 --eval-every 1 "$@"
    columns=$(grep -o '"evaluation_columns":[0-9]*' log | head -n 1)
    case ${columns##*:} in
    "" | 0) [ "$whole" ] || die "not by blocks" ;;
    *) [ ! "$whole" ] || die "by blocks" ;;
    esac
    run 1 predict ck "$T/${graph:-wide}" --logits logits.npy || die "$(cat err)"
    accuracy=$(sed -n 's/.*"event":"end".*"test_accuracy":\([0-9.]*\).*/\1/p' log)
    awk -v test="$accuracy" '{ d = $NF - test; exit !(test > 0 && d * d < 1e-6) }' out || die "$(cat out), after $accuracy"
}

# Hidden matrices that nobody has may be over 2 GiB. Plain training has them.
large() {
    cd "$T" || exit 1
    set -- train "$T/wide" --hidden 200000 --tiles 2 --plan
    run 1 "$@" --submodels 200 || die "$(cat err)"
    grep -q parameters out || die "$(cat out)"
    run 1 "$@" && die "exit status 0"
    sentence "over the 2 GiB" err
}

# The best parameters are kept where the shards are, and groups end together.
wide_groups() {
    set -- "$T/wide" --hidden 1500 --submodels 2 --epochs 12 --eval-every 1 --patience 2 --lr 0.3 --tiles 4 --order none
    train wide-one 1 train "$@"
    train wide-two 2 train "$@" --groups 2x1 --distribution 1d
    same_data "$T/wide-one/ck" ck
    results "$T/wide-one/log" >"$T/one"
    results log | diff "$T/one" - || die "other accuracies"
    ended=$(grep -c '"event":"epoch"' log)
    [ "$ended" -lt 6 ] || die "no early end: $ended epochs"
}

never() {
    train never-none 1 train "$T/small" --hidden 12 --submodels 2 --epochs 8 --eval-every -1
    grep -q accuracy log && ! grep -q '"val_accuracy":null' log && die "evaluated: $(cat log)"
    train never-some 1 train "$T/small" --hidden 12 --submodels 2 --epochs 8 --eval-every 1 --keep last
    same_data "$T/never-none/ck" ck
}

# Parameters of both layers, 20 x 12 + 12 and 12 x 4 + 4; moments are between them.
parameters() { # FOLDER
    tensors "$T/$1/ck" | head -c 1008
    tensors "$T/$1/ck" | tail -c +3025 | head -c 208
}

# Milestones count work: after 4 epochs of work, two of each of two sub-models, the rate is 0 and parameters stay.
milestones() {
    set -- "$T/small" --hidden 12 --seed 4 --submodels 2
    train miles-half 1 train "$@" --epochs 4
    train miles-4 1 train "$@" --epochs 8 --milestones 4 --step-factor 0
    train miles-6 1 train "$@" --epochs 8 --milestones 6 --step-factor 0
    for run in half 4 6; do
        parameters miles-$run >"$T/parameters-$run"
    done
    [ "$(wc -c <"$T/parameters-4")" -eq 1216 ] || die "other sizes"
    cmp "$T/parameters-half" "$T/parameters-4" || die "the rate is not 0 after 4 epochs of work"
    cmp -s "$T/parameters-half" "$T/parameters-6" && die "the rate is 0 before 6 epochs of work"
    return 0
}

refuses() { # TEXT OPTION ...
    text=$1
    shift
    cd "$T" || exit 1
    run 1 train "$T/small" --hidden 12 --epochs 2 "$@" && die "exit status 0"
    sentence "$text" err
}

refuses_columns() {
    cd "$T" || exit 1
    for evaluation in 1 -1; do
        run 4 train "$T/small" --hidden 12 --epochs 2 --submodels 2 --share none --distribution 2d \
            --eval-every $evaluation && die "exit status 0"
        sentence "expected a distribution without columns of ranks" err
    done
}

for model in gcn sage gat resgcn jknet; do
    check "one sub-model is plain training: $model, adam" alone "alone-$model" --layers 3 --model $model
    check "one sub-model is plain training: $model, sgd" alone "alone-sgd-$model" --layers 3 --model $model --optimizer sgd
done
for model in gcn sage gat resgcn jknet; do
    check "two groups, or one of two ranks: $model" groups "two-$model" \
        "2:--groups_2x1_--distribution_1d 2:--distribution_1d" --model $model --epochs 12 --submodels 2 --local-steps 2
done
check "four groups" groups four "4:--groups_4x1_--distribution_1d" --epochs 16 --submodels 4 --local-steps 3
check "two groups, scaled sums of three sub-models" groups scaled "2:--groups_2x1_--distribution_1d" --layers 3 \
    --hidden 13 --submodels 3 --unit-sums scaled
check "two groups, or one of two ranks: features that are cut" groups features \
    "2:--groups_2x1_--distribution_1d 2:--distribution_1d" --layers 3 --submodels 3 --local-steps 2 --epochs 18 \
    --split-layers 0,1
check "two groups, three layers, uneven parts, sgd" groups uneven "2:--groups_2x1_--distribution_1d" --layers 3 \
    --optimizer sgd --epochs 18 --submodels 3 --local-steps 2
check "two groups, or one of two ranks: an ensemble" groups ensemble \
    "2:--groups_2x1_--distribution_1d 2:--distribution_1d" --layers 3 --submodels 3 --share none --epochs 18
check "an ensemble of one" ensemble_of_one
check "an ensemble with clusters" ensemble_with_clusters
check "predictions of an ensemble" predicts_ensemble full 1
check "predictions of an ensemble: clusters, groups" predicts_ensemble clusters 2 --batches clusters:6,3 --groups 2x1
check "predictions of an ensemble: features that are cut" predicts_ensemble features 1 --split-layers 0,1 --submodel-share 2,1,1
check "two groups, or one of two ranks: given shares" groups shares \
    "2:--groups_2x1_--distribution_1d 2:--distribution_1d" --layers 3 --submodels 3 --local-steps 2 --epochs 18 \
    --submodel-share 3,1,2
check "scaled sums" scaled
check "words that travel in a round" words 2 1074 --hidden 14 --epochs 8
check "words that travel in a round, three parts" words 3 "" --hidden 14 --layers 3 --epochs 12 --partition-units fixed
for ranks in 1 3; do
    check "shards on $ranks ranks" shards $ranks
done
for ranks in 2 4; do
    check "evaluation by blocks on $ranks ranks" blocks $ranks
done
check "clusters, halo, groups" mixed
groups=
check "resume" resumes resume 1
check "resume: state begins anew" resumes resume-reset 1 --reset-optimizer
check "resume: copies" resumes resume-copies 1 --share copies
check "resume: scaled sums" resumes resume-scaled 1 --unit-sums scaled
check "resume: features that are cut" resumes resume-features 1 --split-layers 0,1
check "resume: an ensemble" resumes_ensemble
check "resume: latin" resumes resume-latin 1 --partition-units latin --hidden 12
groups="--groups 2x1"
check "resume: two groups" resumes resume-groups 2 --groups 2x1
check "resume: two groups, copies" resumes resume-groups-copies 2 --groups 2x1 --share copies
groups=
for options in "3" "1" "2 --share copies" "3 --reset-optimizer"; do
    # shellcheck disable=SC2086
    check "interrupted: --submodels $options" interrupted $options
done
check "a store in a file" stored
check "a store on a full disk" full
for ranks in 1 2; do
    check "a disk that is full after one checkpoint: $ranks ranks" full_checkpoint $ranks
done
check "killed while a checkpoint is written" killed
check "evaluation by blocks" wide two 1 --hidden 1500
for distribution in 1d halo vertex-cut; do
    check "evaluation by blocks: three layers, $distribution" wide three-$distribution 2 --layers 3 --hidden 800 \
        --distribution $distribution
done
check "evaluation by blocks: groups, a file" wide groups 2 --layers 3 --hidden 800 --groups 2x1 --store "$T"
graph=skew
check "evaluation by blocks: two orders with other tiles" wide orders 1 --model gin --layers 3 --hidden 1100 --order double \
    --tiles 5 --split 60/20/20
graph=
check "evaluation by blocks: columns of ranks" wide columns 2 --hidden 800 --distribution 2d --grid 1x2x1
for norm in row batch; do
    check "evaluation by blocks: norms, $norm" wide norms-$norm 2 --hidden 800 --distribution 1d --residual linear --norm-layers $norm
done
whole=yes
check "evaluation of the whole: attention after an encoder" wide encoder 1 --model gat --hidden 100 --encoder linear --epochs 2
check "evaluation of the whole: a jump over attention" wide jump 1 --model gat --hidden 100 --jump concat --epochs 2
check "evaluation of the whole: an identity residual" wide identity 2 --layers 3 --hidden 800 --distribution 1d --residual identity \
    --epochs 2
check "evaluation of the whole: a residual of attention" wide residual 1 --model gat --hidden 100 --residual linear \
    --classifier linear --epochs 2
check "evaluation of the whole: norms of attention" wide attention 1 --model gat --hidden 100 --norm-layers row --epochs 2
whole=
check "evaluation by blocks: the best of two groups" wide_groups
check "hidden matrices over 2 GiB" large
check "measured shares" shares
check "measured shares of an ensemble" ensemble_shares
check "no evaluation" never
check "milestones count work" milestones
for option in "--local-steps 2" "--rounds 2" "--share copies" "--partition-units fixed" "--split-layers 1" "--store ." \
    --reset-optimizer "--submodel-share 1,1"; do
    # shellcheck disable=SC2086
    check "$option alone" refuses "${option%% *}: expected --submodels M with it" $option
done
check "more sub-models than units" refuses "a hidden layer has 12 units" --submodels 13
check "latin without a multiple" refuses "do not divide the 12 units" --submodels 5 --partition-units latin
check "copies that are cut" refuses "--share copies: no units are cut" --submodels 2 --share copies --split-layers 1
check "copies with parts" refuses "--share copies: no units are cut" --submodels 2 --share copies --partition-units fixed
check "split layers that are none" refuses "--split-layers 2,1: expected all" --submodels 2 --split-layers 2,1
check "split features that are named twice" refuses "--split-layers 0,0: expected all" --submodels 2 --split-layers 0,0
for share in 1 1,2,3 1,0 1,x 1,2, 1,,2 none; do
    check "--submodel-share $share" refuses "--submodel-share $share: expected equal, auto" --submodels 2 --submodel-share $share
done
check "a share without units" refuses "sub-model 1 has none of the 12 units" --submodels 2 --submodel-share 1,100
check "shares of scaled sums" refuses "expected no --partition-units latin" --submodels 2 --submodel-share 2,1 --unit-sums scaled
check "more sub-models than features" refuses "the features have 20 units" --submodels 21 --hidden 24 --split-layers 0
check "latin without a multiple of features" refuses "do not divide the 20 units of the features" --submodels 3 \
    --partition-units latin --split-layers 0
check "a split layer that is not there" refuses "--split-layers 7" --submodels 2 --split-layers 7
check "an ensemble with rounds" refuses "--share none: one round" --submodels 2 --share none --local-steps 2
check "an ensemble with patience" refuses "expected --patience 0" --submodels 2 --share none --patience 3
check "an ensemble with columns of ranks" refuses_columns
check "an ensemble of other losses" refuses "--share none: the loss is sigmoid" --submodels 2 --share none --loss sigmoid
check "preloaded hops" refuses "expected no --preload-hops" --submodels 2 --groups 1x1 --preload-hops 1
check "milestones that fall" refuses "--milestones 4,2: expected epochs that rise" --milestones 4,2
check "patience without evaluations" refuses "--eval-every -1: expected --patience 0" --eval-every -1 --patience 3
check "--submodels 256" refuses "--submodels" --submodels 256
narrow() {
    cd "$T" || exit 1
    run 2 train "$T/small" --hidden 4 --submodels 4 --grid 1x2x1 --epochs 1 && die "it trained"
    sentence "and the hidden units of a sub-model are 1 (expected no fewer than the grid's 2 columns" err
}
check "sub-models narrower than the grid: one sentence" narrow
finish
