#!/bin/sh
# Trainings on links: several ranks, distributions and orders against one rank, --resume, evaluate, stored links against
# those that are drawn, numbers by formulas (tests/links.py), and what is refused. One line per case.
if [ -n "$MPIRUN" ] || [ "$SL_TEST_MPI" = 1 ]; then
    . "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
else
    . "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
fi

alike="ranks_1d distributions models orders formulas"
source=${top_srcdir:-${srcdir:-.}}/tests
case $source in /*) ;; *) source=$PWD/$source ;; esac

# ---- Datasets ----

community=$T/community rmat=$T/rmat bare=$T/bare users=$T/users one_way=$T/users-one-way loops=$T/loops
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
for kind in users users-one-way loops; do
    python3 "$source/links.py" make $kind "$T/$kind" || exit 1
done
"$STARLING" generate community "$community" --vertices 400 --classes 8 --degree 10 --features 12 --seed 1 --quiet &&
    "$STARLING" generate rmat "$rmat" --scale 7 --edge-factor 5 --no-symmetric --features 9 --seed 2 --quiet || exit 1
cp -r "$rmat" "$bare" # identity features
rm "$bare/features.npy"
echo '{"name": "bare"}' >"$bare/meta.json"

# ---- Runs ----

# trained NAME RANKS DATASET ARGUMENT ...: its log is $T/NAME.log, its words $T/out.
trained() {
    log=$T/$1.log dataset=$3 launch=
    [ "$2" -eq 1 ] || launch="$MPIRUN -n $2"
    shift 3
    rm -f "$log"
    timeout --foreground 600 $launch "$STARLING" train "$dataset" --task links --epochs 6 --optimizer sgd --lr 0.3 --hidden 12 --seed 7 \
        --patience 0 --log "$log" "$@" >"$T/out" 2>"$T/err" </dev/null || die "exit status $?: train $dataset $*: $(cat "$T/out" "$T/err")"
}

# Losses and metrics of all epochs.
scores() { # NAME
    sed -n 's/.*"event":"epoch".*"epoch":\([0-9]*\),"loss":\([^,}]*\),.*/\1 \2/p' "$T/$1.log"
    grep '"event":"epoch"' "$T/$1.log" | grep -o '"\(val\|test\)_[a-z_0-9@]*":[^,}]*' | sed 's/.*://'
}

read_scores() { # NAME NAME
    scores "$1" >"$T/one"
    scores "$2" >"$T/two"
    [ "$(wc -l <"$T/one")" -ge "${least:-8}" ] || die "too few scores: $(cat "$T/one")"
}

same() { # NAME NAME
    read_scores "$1" "$2"
    cmp -s "$T/one" "$T/two" || die "$3 other scores: $(paste "$T/one" "$T/two")"
}

# close NAME NAME TOLERANCE WORDS: relative.
close() {
    read_scores "$1" "$2"
    paste -d ' ' "$T/one" "$T/two" | awk -v tolerance="$3" '
        function off(x, y) { return (x - y) ^ 2 > (tolerance * x) ^ 2 }
        NF == 4 && ($1 != $3 || off($2, $4)) || NF == 2 && off($1, $2) || NF % 2 { print; bad = 1 }
        END { exit bad }' >"$T/unlike" || die "$4: unlike scores: $(cat "$T/unlike")"
}

need_ranks() {
    [ -n "$MPIRUN" ] || skip "no launcher"
}

DECODERS='dot distmult mlp' LOSSES='bce bpr'
split='--split-edges 70/15/15'

# ---- Formulas ----

# Metrics and losses of embeddings, by their definitions (tests/links.py).
formulas() { # DATASET
    mkdir -p "$T/formulas"
    rm -rf "$T"/formulas/*
    python3 "$source/links.py" "$STARLING" "$T/formulas" "$1" || die "other numbers"
}

# ---- Ranks ----

# The same tiles: the same bits on any number of ranks.
ranks_1d() {
    need_ranks
    for decoder in $DECODERS; do
        for loss in $LOSSES; do
            set -- "$community" $split --decoder "$decoder" --loss "$loss" --negatives 2 --tiles 6
            trained alone 1 "$@"
            trained shared 3 "$@" --distribution 1d
            same alone shared "$decoder, $loss, 3 ranks:"
        done
    done
}

# alike RANKS ARGUMENT ...: as on one rank, up to rounding. The metric counts pairs, which rounding may turn.
alike() {
    ranks=$1
    shift
    trained alone 1 "$@" --metric loss --tiles 4
    for way in $ways; do
        trained shared "$ranks" "$@" --metric loss "--${way%%=*}" "${way#*=}"
        close alone shared 1e-5 "$way, $ranks ranks, $*"
    done
}

distributions() {
    need_ranks
    ways='distribution=1.5d distribution=halo distribution=cover distribution=vertex-cut'
    alike 2 "$community" $split --decoder distmult --loss bce
    alike 4 "$rmat" $split --decoder mlp --loss bpr --negatives 3
    ways='distribution=halo distribution=cover distribution=vertex-cut distribution=auto'
    alike 3 "$bare" $split --decoder dot --loss bpr --embedding 5
    ways='distribution=2d grid=1x2x2 grid=1x4x1'
    alike 4 "$community" $split --decoder dot --loss bce --negatives 2
    alike 4 "$rmat" $split --decoder dot --loss bpr
    ways='distribution=1d distribution=halo'
    alike 3 "$one_way" $split --decoder mlp --loss bce --order none
    alike 3 "$loops" $split --model rgcn --decoder distmult --loss bpr
}

models() {
    need_ranks
    ways='distribution=1d distribution=halo'
    alike 2 "$community" $split --model sage --jump max --decoder mlp
    alike 2 "$rmat" $split --model gat --heads 2 --lr 0.05 --decoder distmult
    alike 2 "$rmat" $split --model gin --lr 0.01 --loss bpr
    alike 2 "$community" $split --model gcn --layers 3 --jump concat --norm-layers row --lr 0.03
}

# ---- Orders ----

# Draws, directions and splits go by numbers of vertices.
orders() {
    for data in "$community" "$rmat" "$bare" "$users"; do
        for how in '--decoder dot --loss bce' '--decoder mlp --loss bpr --negatives 2' '--decoder distmult --feature-form csr'; do
            [ "$data" != "$bare" ] || how=${how%--feature-form csr}
            set -- "$data" $split $how --metric loss
            trained plain 1 "$@" --order none --tiles 1
            for order in random rabbit degree; do
                trained moved 1 "$@" --order $order --tiles 5
                close plain moved 1e-5 "order $order, $*"
            done
        done
    done
}

# ---- Runs that go on, and what a model says later ----

goes_on() {
    for how in '--decoder distmult --loss bce' '--decoder mlp --loss bpr --negatives 3'; do
        set -- "$rmat" $split $how --tiles 3 --momentum 0.9
        trained whole 1 "$@" --checkpoint "$T/whole.ck" --keep last
        trained first 1 "$@" --epochs 3 --checkpoint "$T/first.ck" --keep last
        trained second 1 "$@" --resume "$T/first.ck" --checkpoint "$T/second.ck" --keep last
        scores whole | grep '^[456] ' >"$T/one"
        scores second | grep '^[456] ' >"$T/two"
        [ "$(wc -l <"$T/one")" -eq 3 ] || die "no three epochs: $(cat "$T/one")"
        cmp "$T/one" "$T/two" || die "other losses after --resume: $(paste "$T/one" "$T/two")"
    done
}

# The closing table and evaluate have the same numbers, whatever the metric.
evaluates() {
    for metric in roc-auc mrr hits@10 hits@50 loss; do
        trained some 1 "$community" $split --eval-negatives 4 --metric $metric --decoder distmult --checkpoint "$T/some.ck" --keep last
        sed -n "s/^  \(validation\|test\) $metric  */\1 /p" "$T/out" >"$T/wanted"
        [ "$(wc -l <"$T/wanted")" -eq 2 ] || die "no $metric in: $(cat "$T/out")"
        exits 0 evaluate "$T/some.ck" "$community" --metric $metric --json "$T/scores.json"
        tr -d ' \n' <"$T/scores.json" >"$T/flat.json"
        while read -r name value; do
            name=$(echo "$name" | sed 's/validation/val/')
            got=$(sed -n "s/.*\"$metric\":{[^}]*\"$name\":\([-0-9.e]*\).*/\1/p" "$T/flat.json")
            awk -v a="$got" -v b="$value" 'BEGIN { exit !(a != "" && (a - b) ^ 2 < 1e-7) }' ||
                die "$metric of $name: $got, and the training said $value: $(cat "$T/flat.json")"
        done <"$T/wanted"
    done
}

# Links that convert has stored are those that train draws with the same seed.
stored() {
    for data in "$community" "$rmat"; do
        rm -rf "$T/stored"
        exits 0 convert "$data" "$T/stored" --split-edges 70/15/15 --split-seed 5 --eval-negatives 2 --quiet
        [ -e "$T/stored/val_links.npy" ] || die "no val_links.npy"
        for metric in mrr loss; do
            trained drawn 1 "$data" $split --eval-negatives 2 --split-seed 5 --tiles 3 --metric $metric
            trained read 1 "$T/stored" --tiles 3 --metric $metric
            same drawn read "stored links:"
        done
        trained moved 1 "$T/stored" --order random --metric loss
        close drawn moved 1e-5 "stored links in another order"
    done
}

# A model learns what it is shown: links score more than other pairs.
learns() {
    trained some 1 "$community" $split --model $1 --optimizer adam --lr 0.01 --epochs 100 --decoder $2 --loss $3 --metric roc-auc
    area=$(sed -n 's/^  test roc-auc  *//p' "$T/out")
    awk -v a="$area" 'BEGIN { exit !(a > 0.7) }' || die "an area of $area after 100 epochs: $(cat "$T/out")"
}

# The first step moves all weights: scores are not all 0, where the loss is 2 log 2.
starts() {
    for decoder in $DECODERS; do
        trained some 1 "$community" --decoder "$decoder" --epochs 1
        ! scores some | grep -q '^1 1\.38629' || die "--decoder $decoder starts with scores of 0"
    done
}

# Without links of validation and test, all edges train and nothing is measured.
no_split() {
    trained some 1 "$community" --decoder distmult
    least=6
    read_scores some some
    grep -q 'validation roc-auc *-$' "$T/out" || die "measured: $(cat "$T/out")"
    trained some 1 "$community" $split --metric loss
    grep -q 'training loss *-$' "$T/out" || die "training links are measured: $(cat "$T/out")"
}

# --plan trains nothing; its total is no less than what the links take.
plans() {
    for how in '--decoder dot' '--decoder mlp --loss bpr --negatives 9'; do
        exits 0 train "$community" --task links $split $how --plan
        grep -q 'MB\|MiB\|KiB\|kB\|GiB\| B' "$T/out" || die "no plan: $(cat "$T/out")"
        ! grep -q '^epoch' "$T/out" || die "it trained"
    done
}

# ---- Refusals ----

refused() { # TEXT ARGUMENT ...
    text=$1
    shift
    exits 2 train "$community" --epochs 2 "$@"
    sentence "$text" "$T/err"
}

# Options of links want the task.
refused_without_task() {
    for option in 'split-edges 70/15/15' 'decoder mlp' 'embedding 4' 'negatives 2' 'eval-negatives 2'; do
        refused "--${option% *}: expected --task links with it" --$option
    done
    refused '--loss bce: expected --task links with it' --loss bce
    refused '--loss bpr: expected --task links with it' --loss bpr
    for metric in mrr hits@10 hits@20 hits@50 hits@100; do
        refused "--metric $metric: expected --task links with it" --metric $metric
    done
}

refused_with_task() {
    words='--task links: does not go with'
    refused "$words --split (expected --split-edges)" --task links --split 60/20/20
    refused "$words --submodels (expected none)" --task links --submodels 2
    refused "$words --groups (expected none)" --task links --groups 1x1
    refused "$words --batches (expected full)" --task links --batches co:2
    refused "$words --rows needed (expected all)" --task links --rows needed
    refused "$words --allow-inexact" --task links --allow-inexact
    refused "$words --order double (expected another order)" --task links --order double
    refused '--eval-negatives 3: expected --split-edges with it' --task links --eval-negatives 3
    refused '--decoder mlp: --model sgc cannot have a linear layer behind it' --task links --decoder mlp --model sgc
    refused '--decoder mlp: its product and that of --jump concat would be one' --task links --decoder mlp --jump concat
    for how in '--jump sum' '--model jknet'; do
        refused '--decoder distmult: does not go with a last layer that reads all others' --task links --decoder distmult $how
    done
    refused '--class-weights balanced: links have no classes' --task links --class-weights balanced
    refused '--label-smoothing 0.1: links have no labels' --task links --label-smoothing 0.1
}

refused_objectives() {
    for loss in cross-entropy sigmoid mse; do
        refused "--loss $loss: --task links has none of labels (expected bce or bpr)" --task links --loss $loss
    done
    for metric in accuracy micro-f1 macro-f1 label-accuracy mae r2 average-precision; do
        refused "--metric $metric: is not defined for links" --task links --metric $metric
    done
    refused '--split-edges' --task links --split-edges 70/20/20
    refused '--keep best: ' --task links --keep best
    exits 0 convert "$community" "$T/uneven" --split-edges 70/15/15 --quiet
    exits 0 convert "$community" "$T/other" --split-edges 40/30/30 --quiet
    cp "$T/other/test_negatives.npy" "$T/uneven"
    exits 2 train "$T/uneven" --task links --metric mrr --epochs 2
    sentence '--metric mrr: ' "$T/err"
    sentence 'expected as many for each link' "$T/err"
    exits 2 train "$T/other" --task links --split-edges 70/15/15 --epochs 2
    sentence '--split-edges' "$T/err"
}

refused_grids() {
    need_ranks
    for decoder in distmult mlp; do
        timeout 120 $MPIRUN -n 2 "$STARLING" train "$community" --task links --decoder $decoder --grid 1x2x1 --epochs 2 >"$T/out" 2>"$T/err" </dev/null
        [ $? -eq 2 ] || die "status of --decoder $decoder on a grid: $(cat "$T/err")"
        grep -q "^starling: --decoder $decoder: expected a distribution that keeps rows whole" "$T/err" || die "no sentence: $(cat "$T/err")"
    done
}

# Nothing to train on.
no_edges() {
    mkdir "$T/lonely"
    cp "$community/features.npy" "$community/meta.json" "$T/lonely"
    npy "$T/lonely/indices.npy" '<i4' '(0,)' ''
    npy "$T/lonely/indptr.npy" '<i8' '(401,)' "$(awk 'BEGIN { for (i = 0; i < 3208; i++) printf "\\000" }')"
    sed 's/"edges": *[0-9]*,//; s/"nnz": *[0-9]*,//' "$community/meta.json" >"$T/lonely/meta.json"
    exits 1 train "$T/lonely" --task links --epochs 2
    sentence 'there is no edge to train on' "$T/err"
}

check "metrics and losses, undirected" formulas "$community"
check "metrics and losses, directed" formulas "$rmat"
check "metrics and losses, users and items" formulas "$users"
check "metrics and losses, from users to items" formulas "$one_way"
check "metrics and losses, loops and relations" formulas "$loops"
check "1 rank, and 3 in 1d" ranks_1d
check "distributions" distributions
check "models" models
check "orders" orders
check "--resume" goes_on
check "evaluate" evaluates
check "stored links" stored
check "it learns: products" learns gcn dot bce
check "it learns: weighted products" learns gcn distmult bpr
check "it learns: mlp" learns sage mlp bce
check "scores at first" starts
check "no links of validation" no_split
check "--plan" plans
check "refused: options of links" refused_without_task
check "refused: options with links" refused_with_task
check "refused: losses, metrics, splits" refused_objectives
check "refused: grids" refused_grids
check "no edge" no_edges
finish
