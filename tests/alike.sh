#!/bin/sh
# Ranks with other options, data or checkpoints: a sentence that names rank, host and what differs, and no wait for ever. And a
# launcher that MPI does not know. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike=late_rank
cd "$T" || exit 1
host=$(uname -n)
source=$(dirname "$karate")/../tests

# two RANK-0 RANK-1: the words of the program on either rank, with blanks between. Words in out and err; returns the exit status.
two() {
    # shellcheck disable=SC2086
    timeout 60 "$MPIRUN" -n 1 "$STARLING" $1 : -n 1 "$STARLING" $2 >out 2>err </dev/null
}

# unlike STATUS TEXT RANK-0 RANK-1: both are refused, once.
unlike() {
    two "$3" "$4"
    status=$?
    [ $status -eq "$1" ] || die "exit status $status instead of $1: $(cat err)"
    sentence "$2" err
}

accepted() { # RANK-0 RANK-1
    two "$1" "$2" || die "exit status $?: $(cat err)"
    [ ! -s err ] || die "$(cat err)"
}

data() {
    directed
    for other in copy labels splits values links; do cp -r directed $other; done
    npy labels/labels.npy '<i4' '(61,)' "$(awk 'BEGIN { for (v = 0; v < 61; v++) printf "\\%03o\\000\\000\\000", v % 3 }')"
    split splits/train_idx.npy 0 4 61
    npy links/val_links.npy '<i4' '(1, 2)' '\000\000\000\000\001\000\000\000'
    cp links/val_links.npy links/val_negatives.npy
    cp -r links negatives
    npy negatives/val_negatives.npy '<i4' '(1, 2)' '\000\000\000\000\002\000\000\000'
    npy values/features.npy '<f4' '(61, 9)' "$(awk 'BEGIN { for (v = 0; v < 549; v++) printf "\\000\\000\\200\\077" }')"
    awk 'BEGIN { for (v = 0; v < 61; v++) for (k = 1; k < 5; k++)
        printf "%d %d %g\n", v, (v * k * 13 + 5 * k + 1 + (v == 60)) % 61, (v + k) % 8 / 4 + 0.25 }' | dataset edges 61 9
    awk 'BEGIN { for (v = 0; v < 61; v++) printf "%d %d\n", v, (v + 1) % 61 }' | dataset ring 61 9
    awk 'BEGIN { for (v = 0; v < 50; v++) printf "%d %d\n", v, (v + 1) % 50 }' | dataset small 50 9
    cp -r directed plain
    rm plain/features.npy
    "$STARLING" convert directed directed.npz --quiet && "$STARLING" convert edges edges.npz --quiet || exit 1
    for seed in 1 2; do "$STARLING" train directed --epochs 2 --seed $seed --checkpoint ck$seed --quiet || exit 1; done
}

options() {
    t="train directed --workers 1 --quiet"
    unlike 2 "rank 1 on host $host has --epochs 5, and rank 0 on host $host has --epochs 3 (expected the same on all ranks)" \
        "$t --epochs 3" "$t --epochs 5"
    unlike 2 "has --lr 0.02, and rank 0 on host $host has no --lr" "$t --epochs 3" "$t --epochs 3 --lr 0.02"
    unlike 2 "has --no-bias, and" "$t --epochs 3" "$t --epochs 3 --no-bias"
    unlike 2 "has --checkpoint, and" "$t --epochs 3" "$t --epochs 3 --checkpoint x"
    echo '{"hidden": 8}' >options.json
    unlike 2 "has no --hidden, and rank 0 on host $host has --hidden 8" "$t --config options.json --epochs 3" "$t --epochs 3"
    unlike 2 "has the command predict, and" "$t --epochs 3" "predict ck1 directed --quiet"
}

# One rank alone knows that its command line is wrong.
command_lines() {
    t="train directed --workers 1 --quiet"
    unlike 2 "--epochs: expected a whole number" "$t --epochs 3" "$t --epochs x"
    unlike 2 "--epochs: expected a whole number" "$t --epochs x" "$t --epochs x"
    unlike 2 "nobody: there are" "$t --epochs 3" "$t --epochs 3 --scheduler nobody"
    unlike 2 'unknown command "trian"' "$t --epochs 3" "trian directed"
    unlike 2 "unknown option --bad" "bench distributions directed --quiet" "bench distributions directed --bad 3"
}

# A rank that runs another command without MPI: the other one must not wait for it.
commands() {
    t="train directed --workers 1 --quiet --epochs 3"
    unlike 2 "rank 1 on host $host has the command version, and rank 0 on host $host has the command train" "$t" version
    unlike 2 "rank 1 on host $host has the command train, and rank 0 on host $host has the command help" "train --help" "$t"
    unlike 2 "has the command info, and" "$t" "info directed"
    unlike 2 "has the command man, and" "$t" man
    unlike 2 "has the command info, and" "bench distributions directed --epochs 2 --repetitions 1" "info directed"
    unlike 2 "has the command completion, and" "$t" "completion bash"
    unlike 1 "nowhere: " "$t" "info nowhere"
    unlike 2 "unknown option --bad" "$t" "info directed --bad"
    accepted version "info directed"
}

# MPI waits for a rank that comes late, and rank 0 says so.
late_rank() {
    # shellcheck disable=SC2016
    timeout 120 "$MPIRUN" -n 3 sh -c '[ $OMPI_COMM_WORLD_RANK != 1 ] || sleep 33; exec "$0" train directed --workers 1 --quiet --epochs 3' \
        "$STARLING" >out 2>err </dev/null || die "exit status $?: $(cat err)"
    sentence "MPI has been starting for 30 seconds: does each rank run this command?" err
}

# every STATUS TEXT SCRIPT: each of three ranks runs the script, which has the program as $0, and must end with the status.
every() {
    rm -f status-*
    timeout 60 "$MPIRUN" -n 3 sh -c "$3"'
        echo $? >"status-$OMPI_COMM_WORLD_RANK"' "$STARLING" >out 2>err </dev/null
    sentence "$2" err
    for rank in 0 1 2; do
        [ "$(cat status-$rank)" = "$1" ] || die "rank $rank ends with $(cat status-$rank) instead of $1: $(cat err)"
    done
}

# The error of one rank, before MPI starts and after, ends all ranks: a launcher may look at any of them.
statuses() {
    echo '{"epochs": 2}' >run.json
    for rank in 0 1 2; do
        every 1 "--config run.json: " '(cd "$(if [ $OMPI_COMM_WORLD_RANK = '$rank' ]; then echo /; else pwd; fi)" &&
            exec "$0" train '"$T"'/directed --config run.json --quiet)'
        every 2 "unknown option --hiden" '"$0" train directed $([ $OMPI_COMM_WORLD_RANK != '$rank' ] || echo --hiden 3)'
        every 1 "nowhere" '"$0" train $([ $OMPI_COMM_WORLD_RANK = '$rank' ] && echo nowhere || echo directed)'
    done
    every 2 "unknown option --hiden" '"$0" train directed --hiden 3'
    every 1 "no/ck: cannot write" '"$0" train directed --epochs 2 --checkpoint no/ck'
}

# Ranks run plan, info and report one by one, without MPI. A rank that fails alone says so, and its status is the launcher's.
fails_alone() {
    for command in "plan --ranks 2" info; do
        # shellcheck disable=SC2016
        timeout 60 "$MPIRUN" -n 2 sh -c 'exec "$0" '"$command"' $([ $OMPI_COMM_WORLD_RANK = 1 ] && echo nowhere || echo directed)' \
            "$STARLING" >out 2>err </dev/null
        status=$?
        [ $status -eq 1 ] || die "$command: exit status $status instead of 1: $(cat err)"
        [ "$(grep -c '^starling: ' err)" -eq 1 ] || die "$command: not one sentence: $(cat err)"
        grep -q '^starling: nowhere: ' err || die "$command: $(cat err)"
    done
}

# Ranks cut one by one, too, and all write the same: no rank's lock refuses another rank.
cut_alike() {
    run 3 partition directed --method libra --parts 2 --out cut.npy --quiet || die "exit status $?: $(cat err)"
    [ ! -s err ] || die "$(cat err)"
    [ -s cut.npy ] && [ -s cut.json ] && [ ! -e .cut.npy.starling-lock ] || die "$(ls -A)"
}

# Memory ends on rank 1, while the options are compared and later: one sentence, which does not blame the options.
memory() {
    ${CC:-cc} -O1 -shared -fPIC -o shim.so "$source/fault_shim.c" -ldl 2>err || skip "no shared object: $(head -n 1 err)"
    for at in 100 250 300 600 700 1000; do
        # shellcheck disable=SC2016
        timeout 60 "$MPIRUN" -n 2 sh -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export LD_PRELOAD='"$T/shim.so FAULT_KIND=memory FAULT_ON=1 FAULT_AT=$at"'
            exec "$0" train directed --epochs 3 --tiles 2 --workers 1 --quiet' "$STARLING" >out 2>err </dev/null
        status=$?
        [ $status -eq 1 ] || die "at $at: exit status $status: $(cat err)"
        sentence " memory" err
    done
}

own_options() {
    t="train directed --epochs 2"
    accepted "$t --workers 1 --checkpoint one --log log" "$t --workers 2 --quiet --checkpoint two --scheduler eager"
    [ -s one ] && [ -s log ] || die "no files"
}

datasets() { # DISTRIBUTION "WORDS|DATASET" ...
    distribution=$1
    shift
    for case; do
        unlike 1 "rank 1 on host $host has ${case%|*}" "train directed --epochs 2 --quiet --distribution $distribution" \
            "train ${case#*|} --epochs 2 --quiet --distribution $distribution"
    done
}

# Files in other places, with the same bytes; formats that each rank reads as a whole.
copies() {
    accepted "train directed --epochs 2 --quiet" "train copy --epochs 2 --quiet"
    accepted "train directed.npz --epochs 2 --quiet" "train directed.npz --epochs 2 --quiet"
    unlike 1 "has other validation negatives than rank 0 on host $host" \
        "train links --epochs 2 --quiet" "train negatives --epochs 2 --quiet"
    unlike 1 "has other edges than rank 0 on host $host (expected the same edges.npz on all ranks)" \
        "train directed.npz --epochs 2 --quiet" "train edges.npz --epochs 2 --quiet"
}

checkpoints() {
    cp ck1 ck3
    accepted "train directed --resume ck1 --epochs 3 --quiet" "train directed --resume ck3 --epochs 3 --quiet"
    unlike 1 "has other numbers in the checkpoint than rank 0" "train directed --resume ck1 --epochs 3 --quiet" "train directed --resume ck2 --epochs 3 --quiet"
    for command in predict evaluate; do
        accepted "$command ck1 directed --quiet" "$command ck3 directed --quiet"
        unlike 1 "has other numbers in the checkpoint than rank 0" "$command ck1 directed --quiet" "$command ck2 directed --quiet"
        unlike 1 "has other edges" "$command ck1 directed --quiet" "$command ck1 edges --quiet"
        unlike 2 "has --distribution halo, and" "$command ck1 directed --quiet" "$command ck1 directed --quiet --distribution halo"
    done
}

# exits_with VARIABLES STATUS: a training with these variables.
exits_with() {
    # shellcheck disable=SC2086
    env $1 "$STARLING" train "$karate" --epochs 1 --quiet --workers 1 >out 2>err </dev/null
    status=$?
    [ $status -eq "$2" ] || die "$1: exit status $status instead of $2: $(cat err)"
    [ "$2" -ne 0 ] || [ ! -s err ] || die "$1: $(cat err)"
}

launchers() {
    exits_with "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2" 2
    sentence "SLURM_STEP_NUM_TASKS is 2" err
    exits_with "PMI_RANK=1 PMI_SIZE=2" 2
    sentence "PMI_SIZE is 2" err
    exits_with "SLURM_JOB_ID=7 SLURM_NTASKS=2" 0 # a shell of salloc
    exits_with "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1" 0
    exits_with "SLURM_STEP_NUM_TASKS=2 STARLING_ALONE=1" 0
    exits_with "PMI_RANK=1 PMI_SIZE=2 STARLING_ALONE=1" 0
    SLURM_STEP_NUM_TASKS=2 run 1 info "$karate" || die "$(cat err)"
    # mpirun's own servers may be tasks of srun
    SLURM_STEP_NUM_TASKS=3 "$MPIRUN" -n 1 "$STARLING" train "$karate" --epochs 1 --quiet 2>err || die "$(cat err)"
}

check "the data" data
check "options" options
check "command lines" command_lines
check "commands without MPI beside a training" commands
check "a rank that comes late" late_rank
check "the status of each rank" statuses
check "a rank that fails alone in plan and info" fails_alone
check "a partition on ranks" cut_alike
check "memory that ends on one rank" memory
check "options of a rank's own" own_options
check "datasets" datasets 1d "other labels than|labels" "other training vertices|splits" "61 adjacency entries, and|ring" \
    "other features than|values" "no features, and|plain" "validation links, and|links"
check "datasets, halo" datasets halo "other edges than|edges"
check "datasets, vertex-cut" datasets vertex-cut "50 vertices, and|small"
check "copies and files" copies
check "checkpoints" checkpoints
check "launchers" launchers
finish
