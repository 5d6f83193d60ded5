# shellcheck shell=sh
# What the tests of the program on several ranks share, for them to source: they are skipped without an MPI launcher
# ($MPIRUN, or SL_TEST_MPI=1 for the mpirun on PATH).
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# Open MPI looks for networks at each start, and waits a second for ranks that an error ends. hwloc looks for cards in each
# process. All of it was more than half of the time of a short training. Ranks of programs that start MPI themselves yield
# their core while they wait, as the program's do.
OMPI_MCA_pml=ob1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_odls_base_sigkill_timeout=0 HWLOC_COMPONENTS=-pci,-linuxio
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export PRTE_MCA_rmaps_default_mapping_policy OMPI_MCA_pml OMPI_MCA_mpi_yield_when_idle OMPI_MCA_odls_base_sigkill_timeout HWLOC_COMPONENTS
[ -n "$MPIRUN" ] || [ "$SL_TEST_MPI" != 1 ] || MPIRUN=$(command -v mpirun)
[ -n "$MPIRUN" ] || { echo "no MPI"; exit 77; }
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1

# run RANKS ARGUMENT ...: 1 without the launcher. Words in out and err; returns the exit status.
run() {
    ranks=$1
    shift
    if [ "$ranks" -eq 1 ]; then
        timeout 1200 "$STARLING" "$@" >out 2>err </dev/null
    else
        timeout 1200 "$MPIRUN" -n "$ranks" "$STARLING" "$@" >out 2>err </dev/null
    fi
}

# train FOLDER RANKS ARGUMENT ...: with log and checkpoint in a folder of its own, so that they have the same names in
# every configuration.
train() {
    folder=$1
    shift
    mkdir -p "$T/$folder"
    cd "$T/$folder" || exit 1
    run "$@" --log log --checkpoint ck || die "exit status $? in $folder: $(cat out err)"
    [ ! -s err ] || die "on stderr in $folder: $(cat err)"
}

# Losses and accuracies of a log, as they stand there.
results() { # FILE
    grep -oE '"epoch":[0-9]+|"(loss|[a-z]+_accuracy)":[-0-9n][^,}]*' "$1"
}

same() { # FOLDER FOLDER
    results "$T/$1/log" >"$T/one"
    results "$T/$2/log" >"$T/two"
    [ "$(wc -l <"$T/one")" -gt 30 ] || die "an empty log"
    diff "$T/one" "$T/two" || die "other losses in $2 than in $1"
    cmp "$T/$1/ck" "$T/$2/ck" || die "other parameters in $2 than in $1"
}

losses() { # FOLDER
    sed -n 's/.*"epoch",.*"loss":\([^",}][^",}]*\).*/\1/p' "$T/$1/log"
}

# The same losses of so many epochs to 1e-4, relative.
near() { # FOLDER FOLDER EPOCHS; $tolerance: how near, 1e-4
    losses "$1" >"$T/one"
    losses "$2" >"$T/two"
    [ "$(wc -l <"$T/two")" -eq "$3" ] || die "no $3 losses in $2"
    paste "$T/one" "$T/two" | awk -v most="${tolerance:-1e-4}" '
        { d = ($1 - $2) / $1; if (d < 0) d = -d # to mawk, NaN <= most is true
          if (!($1 + 0 > 0 && $2 + 0 > 0 && d <= most)) { print "epoch", NR ":", $0; bad = 1 } }
        END { exit bad }' || die "the losses of $2 differ from those of $1"
}

# within TOLERANCE COMMAND ...: gradients in bfloat16 are rounded where they meet, which differs from rank to rank.
within() {
    tolerance=$1
    shift
    "$@"
}

# Bytes of a kind in an epoch, summed over the ranks; with `exact_`, in an exact epoch.
traffic() { # FOLDER KIND [exact_]
    tail -n 1 "$T/$1/log" | sed -n "s/.*\"$3traffic_per_epoch\":{[^}]*\"$2\":\[\([^]]*\).*/\1/p" | tr ',' '\n' |
        awk '{ sum += $1 } END { print sum }'
}

# grid NAME "RANKS ..." OPTION ...: the same bits on one rank and on these.
grid() {
    grid=$1 all=$2
    shift 2
    set -- "$@" --distribution 1d
    train "$grid-1" 1 train "$@"
    for n in $all; do
        train "$grid-$n" "$n" train "$@"
        same "$grid-1" "$grid-$n"
        sent=$(sed -n 's/.*"bytes_sent":\[\([^]]*\).*/\1/p' "$T/$grid-$n/log")
        [ "$(echo "$sent" | tr ',' '\n' | grep -c '[1-9]')" -eq "$n" ] || die "$n ranks sent $sent bytes"
    done
}

# refused TEXT ARGUMENT ...: three ranks say one sentence, which holds TEXT.
refused() {
    text=$1
    shift
    cd "$T" || exit 1
    run 3 "$@" && die "exit status 0: $*"
    sentence "$text" err
}

# trainings RANKS PROGRAM [ARGUMENT ...]: one that trains many times, and sums it up. $seconds: how long it may take, 600.
trainings() {
    start=$(date +%s) on=$1 trains=$2
    shift 2
    TMPDIR=$T timeout "${seconds:-600}" "$MPIRUN" -n "$on" "${top_builddir:-.}/tests/$trains" "$@" >"$T/out" 2>&1 </dev/null ||
        die "exit status $?: $(cat "$T/out")"
    cat "$T/out"
    grep -q "^[1-9][0-9]* cases on $on ranks\{0,1\}, 0 failed$" "$T/out" || die "no summary"
    echo "$(($(date +%s) - start)) s"
}

# A number of the first or last line of a log.
figure() { # head|tail LOG KEY
    "$1" -n 1 "$2" | sed -n "s/.*\"$3\":\([0-9]*\).*/\1/p"
}

# What 4 ranks take for $T/deep is what was planned.
taken_as_planned() { # OPTION ...
    run 4 train deep --epochs 2 --tiles 8 --workers 1 --log deep.jsonl --quiet "$@" || die "$(cat err)"
    as_planned deep.jsonl "$@"
}

# Where messages of two matrices travel together, fewer may be on the way than there is memory for: $least says how many
# per cent of the plan are taken at least.
as_planned() { # LOG ...
    planned=$(figure head "$1" total) taken=$(figure tail "$1" tile_bytes)
    [ -n "$planned" ] && [ -n "$taken" ] || die "no figures in the log"
    [ $((100 * taken)) -le $((110 * planned)) ] && [ $((100 * taken)) -ge $((${least:-90} * planned)) ] ||
        die "planned $planned bytes, took $taken: $*"
}

# The lists of a kind in a log: the prediction's in its first line, the measured one in its last.
prediction_of() { # LOG KIND
    head -n 1 "$1" | sed -n "s/.*\"prediction\":{[^}]*\"$2\":\[\([^]]*\)\].*/\1/p"
}

measured_of() { # LOG KIND
    tail -n 1 "$1" | sed -n "s/.*\"traffic_per_epoch\":{[^}]*\"$2\":\[\([^]]*\)\].*/\1/p"
}

# planned_of NAME KEY: a figure of a row of $T/plan.json, whose keys are in order.
planned_of() {
    tr -d '", ' <"$T/plan.json" | awk -F: -v name="$1" -v key="$2" '
        $1 == "grids" { rows = 1 }
        rows && $1 == "words" && !mean { split("", row) }
        { mean = $1 == "mean" || mean && $1 != "}" }
        rows && !mean { row[$1] = $2; if (row["grid"] == name && (key in row)) found = row[key] }
        END { print found }'
}

# received_as_planned NAME "RANKS:GRID-OR-DISTRIBUTION ..." OPTION ...: every rank receives what was planned, to the byte.
received_as_planned() {
    name=$1
    some $2
    shift 2
    for grid in $all; do
        folder=$name-$grid
        case $grid in *:halo | *:cover | *:vertex-cut) how=--distribution ;; *) how=--grid ;; esac
        train "$folder" "${grid%%:*}" train --epochs 2 "$@" $how "${grid#*:}"
        for kind in bytes_received rows_received sums_received adjacency_received; do
            planned=$(prediction_of log $kind) measured=$(measured_of log $kind)
            [ -n "$planned" ] && [ "$planned" = "$measured" ] || die "$grid, $kind: $planned planned, $measured received"
        done
        [ "$(prediction_of log messages | tr , '\n' | awk '{ n += $1 } END { print n }')" = "$(traffic "$folder" messages)" ] ||
            die "$grid: $(prediction_of log messages) messages planned, $(measured_of log messages) sent"
    done
}

# Checkpoints of runs with unlike options: only the tensors at their end are the same, parameters, two moments and what is
# kept of the best epoch.
same_tensors() { # PARAMETERS FILE FILE
    copies=3
    ! grep -aq '[.]best"' "$2" || copies=4
    tail -c $((copies * 4 * $1)) "$2" >"$T/one"
    tail -c $((copies * 4 * $1)) "$3" | cmp "$T/one" - || die "other parameters"
}

# slow_link LATENCY BYTES-PER-SECOND: what is remembered in $T/slow.
slow_link() {
    mkdir -p "$T/slow/starling"
    printf '{"%s": {"processors": %d, "latency_seconds": %s, "bytes_per_second": %s}}\n' "$(uname -n)" \
        "$(getconf _NPROCESSORS_ONLN)" "$1" "$2" >"$T/slow/starling/link.json"
}

# ---- Data ----

# int64 vertices of a split: those whose number modulo 10 is from FIRST to LAST.
split() { # FILE FIRST LAST VERTICES
    count=$(awk "BEGIN { for (v = 0; v < $4; v++) n += v % 10 >= $2 && v % 10 <= $3; print n + 0 }")
    npy "$1" '<i8' "($count,)" "$(awk "BEGIN { for (v = 0; v < $4; v++) if (v % 10 >= $2 && v % 10 <= $3)
        printf \"\\\\%03o\\\\%03o\\\\000\\\\000\\\\000\\\\000\\\\000\\\\000\", v % 256, int(v / 256) }")"
}

# A dataset out of an edge list: three classes, splits, and features that are 0 or 1.
dataset() { # DIRECTORY VERTICES FEATURES, the edges on stdin
    cat >"$1.txt"
    "$STARLING" convert "$1.txt" "$1" --quiet || exit 1
    npy "$1/labels.npy" '<i4' "($2,)" \
        "$(awk "BEGIN { for (v = 0; v < $2; v++) printf \"\\\\%03o\\\\000\\\\000\\\\000\", int(v * 7 / 5) % 3 }")"
    [ "$3" -eq 0 ] || npy "$1/features.npy" '<f4' "($2, $3)" "$(awk "BEGIN { for (v = 0; v < $2; v++)
        for (j = 0; j < $3; j++) printf (v * v + 3 * j) % 7 < 3 ? \"\\\\000\\\\000\\\\200\\\\077\" : \"\\\\000\\\\000\\\\000\\\\000\" }")"
    rm -f "$1/meta.json"
    printf '{"name": "test", "directed": true, "classes": 3}\n' >"$1/meta.json"
    split "$1/train_idx.npy" 0 5 "$2"
    split "$1/val_idx.npy" 6 7 "$2"
    split "$1/test_idx.npy" 8 9 "$2"
}

# $T/directed: 61 vertices, weights, dense features.
directed() {
    awk 'BEGIN { for (v = 0; v < 61; v++) for (k = 1; k < 5; k++)
        printf "%d %d %g\n", v, (v * k * 13 + 5 * k + 1) % 61, (v + k) % 8 / 4 + 0.25 }' | dataset "$T/directed" 61 9
    timeout 60 "$STARLING" info "$T/directed" >"$T/out" || exit 1
    grep -q '^vertices  *61$' "$T/out" && grep -q ' directed, .*weighted' "$T/out" && grep -q '9, dense' "$T/out" ||
        die "$(cat "$T/out")"
}

# $T/sparse: the directed graph, its features as CSR: two in every row but the first.
sparse() {
    cp -r "$T/directed" "$T/sparse"
    rm "$T/sparse/features.npy"
    npy "$T/sparse/features_indptr.npy" '<i8' '(62,)' "$(awk 'BEGIN { for (v = 0; v < 62; v++)
        printf "\\%03o\\000\\000\\000\\000\\000\\000\\000", v ? 2 * v - 2 : 0 }')"
    npy "$T/sparse/features_indices.npy" '<i4' '(120,)' "$(awk 'BEGIN { for (v = 1; v < 61; v++)
        printf "\\%03o\\000\\000\\000\\%03o\\000\\000\\000", v % 5, 5 + v * v % 8 }')"
    npy "$T/sparse/features_data.npy" '<f4' '(120,)' "$(awk 'BEGIN { for (v = 0; v < 120; v++)
        printf v % 3 ? "\\000\\000\\200\\077" : "\\000\\000\\100\\100" }')"
    timeout 60 "$STARLING" info "$T/sparse" >"$T/out" 2>&1 || die "$(cat "$T/out")"
    grep -q 'features  *10, CSR, 120 entries' "$T/out" || die "$(cat "$T/out")"
}
