#!/bin/sh
# Losses of 20 epochs and the final weights, bit for bit what tests/same-as-before.txt has: for code that moves without
# changing a result. Each line there is a configuration, the checksum of its losses and that of its tensors' words, sorted,
# so that a checkpoint may name and order tensors anew.
#
# The kernels are those of AVX2 and OpenBLAS's for Haswell, on any processor that has them. oneDNN may use no AVX2, so that
# OpenBLAS multiplies in builds with and without oneDNN. The first line of the file says which libraries the bits are from;
# with others the test is skipped.
#
# same-as-before.sh --record FILE writes FILE instead; $SL_SAME: only configurations that match this pattern of grep -E.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
alike=as_before # configurations differ in options alone
known=${top_srcdir:-${srcdir:-.}}/tests/same-as-before.txt
case $known in /*) ;; *) known=$PWD/$known ;; esac
record=
[ "$1" != --record ] || case $2 in /*) record=$2 ;; *) record=$PWD/$2 ;; esac
OPENBLAS_CORETYPE=Haswell
DNNL_MAX_CPU_ISA=SSE41
export OPENBLAS_CORETYPE DNNL_MAX_CPU_ISA
command -v perl >/dev/null || { echo "no perl"; exit 77; }

# Two graphs: `words`, 61 vertices, both directions of each edge, sparse features of words, 5 classes; `dense`, 47
# vertices, one direction, weights, dense features, 4 classes. Both have vertices without neighbours. `typed` has three relations.
make_data() {
    perl -e '
use strict; use warnings;
my $state = 1;
sub draw { $state = ($state * 16807) % 2147483647; return $state % $_[0] }
sub npy {
    my ($file, $type, $shape, $data) = @_;
    my $header = "{\x27descr\x27: \x27$type\x27, \x27fortran_order\x27: False, \x27shape\x27: ($shape), }";
    $header .= " " x (63 - (10 + length $header) % 64) . "\n";
    open my $out, ">:raw", $file or die "$file: $!";
    print $out "\x93NUMPY\x01\x00", pack("v", length $header), $header, $data;
    close $out or die "$file: $!";
}
sub graph {
    my ($name, $n, $edges, $features, $classes, $both) = @_;
    mkdir $name or die "$name: $!";
    my @rows = map { {} } 1 .. $n;
    for (1 .. $edges) {
        my ($u, $v) = (draw($n - 3), int(draw($n - 3) * draw(1000) / 1000)); # three have none, few have many
        $rows[$u]{$v} = 1 + draw(7);
        $rows[$v]{$u} = 1 if $both;
    }
    my ($sum, @starts, @columns, @weights) = (0, 0);
    for my $row (@rows) {
        my @sorted = sort { $a <=> $b } keys %$row;
        push @columns, @sorted;
        push @weights, map { $row->{$_} / 4 } @sorted;
        push @starts, $sum += @sorted;
    }
    npy("$name/indptr.npy", "<i8", $n + 1 . ",", pack("q<*", @starts));
    npy("$name/indices.npy", "<i4", scalar(@columns) . ",", pack("l<*", @columns));
    npy("$name/weights.npy", "<f4", scalar(@weights) . ",", pack("f<*", @weights)) unless $both;
    npy("$name/labels.npy", "<i4", "$n,", pack("l<*", map { draw($classes) } 1 .. $n));
    npy("$name/edge_types.npy", "<i4", scalar(@columns) . ",", pack("l<*", map { $_ % 3 } 0 .. $#columns)) if $name eq "typed";
    my @split = ([], [], []);
    push @{$split[$_ % 3]}, $_ for 0 .. $n - 2;
    my @names = ("train", "val", "test");
    npy("$name/$names[$_]_idx.npy", "<i8", scalar(@{$split[$_]}) . ",", pack("q<*", @{$split[$_]})) for 0 .. 2;
    if ($both) {
        my ($count, @from, @words, @data) = (0, 0);
        for my $v (0 .. $n - 1) {
            my @bag = grep { draw(5) == 0 } 0 .. $features - 1;
            push @words, @bag;
            push @data, map { 1 + draw(2) } @bag;
            push @from, $count += @bag;
        }
        npy("$name/features_indptr.npy", "<i8", $n + 1 . ",", pack("q<*", @from));
        npy("$name/features_indices.npy", "<i4", "$count,", pack("l<*", @words));
        npy("$name/features_data.npy", "<f4", "$count,", pack("f<*", @data));
    } else {
        my @dense = map { (draw(2001) - 1000) / 512 } 1 .. $n * $features;
        npy("$name/features.npy", "<f4", "$n, $features", pack("f<*", @dense));
    }
    open my $meta, ">", "$name/meta.json" or die;
    print $meta "{\"nodes\": $n, \"classes\": $classes, \"features\": {\"count\": $features}}\n";
    close $meta or die;
}
chdir shift or die;
graph("words", 61, 180, 23, 5, 1);
graph("dense", 47, 200, 13, 4, 0);
graph("typed", 53, 190, 11, 4, 1);
' "$T"
}

# configuration RANKS DATASET OPTION ...: a line of the file. The name is what was asked for.
at=0
configuration() {
    name=$(echo "$*" | tr -s ' -' '_-')
    ! [ -n "$SL_SAME" ] || echo "$name" | grep -Eq "$SL_SAME" || return 0
    at=$((at + 1))
    [ -n "$record" ] || [ $((at % ${sample#*/})) -eq "${sample%/*}" ] || return 0
    ranks=$1 data=$T/$2
    [ "$2" != karate ] || data=$karate
    shift 2
    stopped=
    [ "$1" != resumed ] || { shift; stopped="--stop-after 9"; }
    mkdir -p "$T/run"
    # shellcheck disable=SC2086
    (
        cd "$T/run" || exit 1
        rm -f log more ck
        set -- --tiles 5 --hidden 7 --workers 1 --device cpu --instructions v3 --order none --patience 0 --keep last --eval-every 5 \
            --checkpoint-every 5 "$@"
        run "$ranks" train "$data" --epochs 20 "$@" $stopped --log log --checkpoint ck || exit 1
        [ -z "$stopped" ] || run "$ranks" train "$data" --epochs 20 "$@" --resume ck --log more --checkpoint ck || exit 1
        [ -z "$stopped" ] || cat more >>log
    ) || { echo "$name: $(cat "$T/run/err")" | head -n 3 | tr '\n' ' ' >>"$T/failed"; return 1; }
    losses run >"$T/losses"
    [ "$(wc -l <"$T/losses")" -ge 20 ] || { echo "$name: no losses" >>"$T/failed"; return 1; }
    header=$(od -An -v -tu8 -N8 "$T/run/ck" | tr -d ' ')
    words=$(tail -c +$((header + 9)) "$T/run/ck" | od -An -v -tx4 -w4 | sort | cksum | cut -d' ' -f1)
    echo "$name $(cksum <"$T/losses" | cut -d' ' -f1) $words"
}

all() {
    # Every model and aggregator on one rank and in rows, in each precision.
    for model in "gcn" "gcn --norm row" "sage --aggregator gcn" "sage --aggregator mean" "sage --aggregator sum" \
        "sage --aggregator max"; do
        for ranks in 1 3; do
            configuration $ranks dense --distribution 1d --model $model
            configuration $ranks words --distribution 1d --model $model --dropout 0.3 --layers 3
        done
        configuration 2 dense --distribution 1d --model $model --precision bf16
        configuration 2 words --distribution halo --model $model
        configuration 4 dense --distribution halo --model $model --dropout 0
        configuration 4 dense --distribution 2d --model $model
    done
    # Sums everywhere.
    for model in "gcn" "sage --aggregator mean" "sage --aggregator sum --layers 3"; do
        configuration 2 dense --distribution 1.5d --model $model
        configuration 4 words --distribution 1.5d --model $model
        configuration 3 words --grid 1x1x3 --model $model --precision bf16
        configuration 2 words --distribution vertex-cut --model $model
        configuration 3 dense --distribution vertex-cut --model $model --precision bf16
        configuration 3 words --distribution vertex-cut --model $model --delay cd-1 --partial-sums unscaled
        configuration 4 dense --distribution vertex-cut --model $model --delay cd-3 --partial-sums unscaled
        configuration 2 dense --distribution vertex-cut --model $model --delay 0c --partial-sums unscaled --dropout 0
    done
    configuration 8 dense --distribution 3d --model gcn
    configuration 8 words --grid 2x2x2 --model sage
    configuration 6 words --grid 1x3x2 --layers 3
    configuration 4 words --grid 1x4x1 --hidden 9
    configuration 3 karate --distribution 1d --epochs 20
    configuration 2 karate --distribution vertex-cut
    # Orders, products, messages, blocks.
    for order in degree rcm rabbit random; do
        configuration 1 dense --order $order
    done
    configuration 2 words --order random --distribution 1d
    configuration 4 words --order double --distribution 2d
    configuration 4 words --order double --distribution 1.5d
    for products in gemm spmm; do
        configuration 2 dense --product-order $products --distribution 1d --input-dropout 0
        configuration 4 dense --product-order $products --distribution 2d
        configuration 2 dense --product-order $products --distribution vertex-cut
    done
    configuration 1 dense --input-dropout 0 --no-cache-aggregate
    configuration 2 words --precision tf32 --distribution 1d
    for broadcast in tree direct; do
        configuration 4 words --distribution 1d --broadcast $broadcast --layers 3
    done
    configuration 2 words --distribution 1d --no-overlap
    configuration 4 dense --distribution 1.5d --no-cache-adjacency
    configuration 2 words --distribution 1d --block-columns 17
    configuration 1 dense --model sage --aggregator max --block-columns 11
    configuration 3 words --distribution halo --partition ../parts.npy
    configuration 3 words --distribution vertex-cut --partition hdrf
    # Optimisers, schedules, resumed runs.
    configuration 2 dense --distribution 1d --optimizer sgd --schedule step --step-epochs 5
    configuration 2 words --distribution halo --optimizer adamw --clip-norm 0.5
    configuration 1 words resumed --layers 3
    configuration 2 dense resumed --distribution 1d --model sage --aggregator max
    configuration 3 words resumed --distribution vertex-cut --delay cd-2 --partial-sums unscaled
    configuration 4 dense resumed --distribution 2d --precision bf16
    configuration 2 words resumed --distribution halo --model sage
    # Attention, lists of layers, blocks.
    for model in "gat --heads 2" "gatv2 --heads 2" "transformer --heads 2"; do
        configuration 1 dense --model $model --layers 3
        configuration 3 words --model $model --distribution halo
        configuration 2 words --model $model --distribution vertex-cut --attention-dropout 0.3
    done
    for model in "gin" "sgc --hops 2" "appnp --hops 3" "jknet --layers 3" "resgcn --layers 3" \
        "resgcn --layers 5 --block-norm batch --recompute 2" "gcn --encoder linear --residual linear --classifier linear" \
        "sage --layers 3 --norm-layers row --jump max"; do
        configuration 1 words --model $model
        configuration 2 dense --model $model --distribution 1d
    done
    configuration 2 words resumed --model gat --heads 2 --distribution 1d
    configuration 1 typed --model rgcn --bases 2
    configuration 2 typed --model rgcn --distribution halo
    # Batches, groups, sub-models, links.
    for batches in "clusters:6,2" "co:3" "co:3 --max-hop 1 --fanout 1" "co:3 --max-hop 1 --resample 2"; do
        configuration 1 words --batches $batches
        configuration 2 dense --batches $batches --distribution 1d
    done
    configuration 2 words resumed --batches clusters:6,2 --distribution halo
    for groups in "2x1" "2x1 --preload-hops 1" "1x2 --max-hop 1"; do
        configuration 2 words --groups $groups
    done
    configuration 4 dense --groups 2x2 --model sage
    configuration 4 words --groups 2x2 --batches co:2
    for units in "--submodels 3 --local-steps 2" "--submodels 2 --split-layers 0,1 --unit-sums scaled" "--submodels 2 --share copies" \
        "--submodels 2 --share none"; do
        configuration 1 words --layers 3 $units --epochs 60
    done
    configuration 2 dense --layers 3 --submodels 2 --groups 2x1 --epochs 60
    configuration 1 words resumed --layers 3 --submodels 3 --local-steps 2 --epochs 60
    configuration 1 words --task links --split-edges 80/10/10
    configuration 2 words --task links --split-edges 80/10/10 --decoder distmult --loss bpr --distribution 1d
}

# The first line of the file.
libraries() {
    echo "# $(sed -n 's/.*"cblas":"\([^"]*\)".*/\1/p' "$T/log"), glibc $(getconf GNU_LIBC_VERSION | cut -d' ' -f2), $(uname -m)"
}

make_data || exit 1
exits 0 train "$karate" --epochs 1 --quiet --log "$T/log"
exits 0 partition "$T/words" --method random --parts 3 --out "$T/parts.npy" --quiet
: >"$T/failed"
if [ -n "$record" ]; then
    { libraries; all; } >"$record"
    cat "$T/failed"
    exit 0
fi
[ "$(head -n 1 "$known")" = "$(libraries)" ] || { echo "the bits are from $(head -n 1 "$known"), not $(libraries)"; exit 77; }
grep -q avx2 /proc/cpuinfo || { echo "no AVX2"; exit 77; }

all >"$T/now"
as_before() { # NAME
    now=$(awk -v name="$1" '$1 == name' "$T/now")
    before=$(awk -v name="$1" '$1 == name' "$known")
    [ -n "$now" ] || die "$(grep -F -- "$1:" "$T/failed" || echo "did not run")"
    [ "$now" = "$before" ] || die "other bits: $now, before $before"
}
for name in $(tail -n +2 "$known" | cut -d' ' -f1 | grep -E "${SL_SAME:-.}"); do
    check "$name" as_before "$name"
done
finish
