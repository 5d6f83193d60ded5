#!/bin/sh
# --project-features: features times a random matrix. Losses are those of a dataset that a program of its own projected, on all
# distributions, and a checkpoint knows the matrix. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

# Features of 10 columns, in rows of floats ("dense") and the same in CSR ("csr"). One in three is not 0.
data() {
    "$STARLING" generate community "$T/dense" --vertices 150 --classes 3 --features 10 --seed 1 --quiet || die "no graph"
    cp -r "$T/dense" "$T/csr" && cp -r "$T/dense" "$T/ready" && cp -r "$T/dense" "$T/few" || die "no copies"
    rm "$T/csr/features.npy"
    sed -i 's/"dense"/"csr"/' "$T/csr/meta.json"
    sed -i 's/"count": 10/"count": 6/' "$T/ready/meta.json"
    sed -i 's/"count": 10/"count": 9/' "$T/few/meta.json"
    python3 - "$T" <<'PYTHON' || die "no features"
import math, struct, sys
folder, seed, columns, M, M64 = sys.argv[1], 5, 6, 2**32 - 1, 2**64 - 1

def write(name, kind, code, shape, values):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %r}" % (kind, shape)
    head += " " * (117 - len(head)) + "\n"
    with open(f"{folder}/{name}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%d%s" % (len(values), code), *values))

def stream(seed, purpose):  # SplitMix64
    key = 0
    for word in (seed, purpose << 32, 0):
        key = (key + 0x9E3779B97F4A7C15 + word) & M64
        key = ((key ^ key >> 30) * 0xBF58476D1CE4E5B9) & M64
        key = ((key ^ key >> 27) * 0x94D049BB133111EB) & M64
        key ^= key >> 31
    return key

def normal(key, a, b):  # Threefry-2x32 of 13 rounds, Box and Muller
    keys = [key & M, key >> 32]
    keys.append(0x1BD11BDA ^ keys[0] ^ keys[1])
    a, b = (a + keys[0]) & M, (b + keys[1]) & M
    for k in range(13):
        bits = (13, 15, 26, 6, 17, 29, 16, 24)[k % 8]
        a = (a + b) & M
        b = ((b << bits | b >> 32 - bits) & M) ^ a
        if k % 4 == 3:
            n = k // 4 + 1
            a, b = (a + keys[n % 3]) & M, (b + keys[(n + 1) % 3] + n) & M
    return math.sqrt(-2 * math.log((a + 1) / 2**32)) * math.cos(2 * math.pi * b / 2**32)

data = open(folder + "/dense/features.npy", "rb").read()
x = struct.unpack("<1500f", data[-6000:])
x = [v if (v * 1000) % 3 < 1 else 0.0 for v in x]
rows = [x[k:k + 10] for k in range(0, 1500, 10)]
write("dense/features", "<f4", "f", (150, 10), x)
write("few/features", "<f4", "f", (150, 9), [v for row in rows for v in row[1:]])
full = [k for k in range(1500) if x[k]]
write("csr/features_indptr", "<i8", "q", (151,), [sum(k < 10 * r for k in full) for r in range(151)])
write("csr/features_indices", "<i4", "i", (len(full),), [k % 10 for k in full])
write("csr/features_data", "<f4", "f", (len(full),), [x[k] for k in full])
key = stream(seed, 11)
matrix = [[normal(key, c, j) / math.sqrt(columns) for j in range(columns)] for c in range(10)]
ready = []
for row in rows:
    norm = math.sqrt(sum(v * v for v in row)) or 1.0
    ready += [sum(v * matrix[c][j] for c, v in enumerate(row)) / norm for j in range(columns)]
write("ready/features", "<f4", "f", (150, columns), ready)
PYTHON
}

usual="--hidden 8 --layers 2 --epochs 12 --seed 5 --tiles 4 --patience 0 --quiet --workers 1"
projects="--project-features 6 --normalize-features l2"

# The numbers of a projection in double precision by another program, with whatever reads the rows.
formula() {
    # shellcheck disable=SC2086
    for how in "" "--no-cache-aggregate" "--model sage --input-dropout 0" "--batches co:3" "--batches clusters:6,2" \
        "--batches co:3 --fanout 2 --resample 1" "--submodels 2 --local-steps 2" "--order random" "--rows needed"; do
        train ready 1 train "$T/ready" $usual --normalize-features none --feature-form csr $how # as for dense ones in memory
        for form in dense csr; do
            train $form 1 train "$T/$form" $usual $projects $how
            near ready $form "$(losses ready | wc -l)"
        done
    done
    # shellcheck disable=SC2086
    train plain 1 train "$T/dense" $usual --normalize-features l2 && ! (near plain dense 12) || die "the projection did nothing"
}

# The same losses on all distributions.
distributions() {
    # shellcheck disable=SC2086
    for form in dense csr; do
        train alone 1 train "$T/$form" $usual $projects
        for how in 2:--distribution_1d 3:--distribution_halo 2:--distribution_vertex-cut 4:--grid_2x2x1 4:--grid_2x1x2 \
            2:--distribution_1d_--order_random 2:--groups_2x1; do
            train several "${how%%:*}" train "$T/$form" $usual $projects $(echo "${how#*:}" | tr _ ' ')
            near alone several 12
        done
    done
}

# A checkpoint has the seed and the width; a run goes on, and predicts, with the same numbers.
checkpoints() {
    # shellcheck disable=SC2086
    train whole 1 train "$T/csr" $usual $projects
    # shellcheck disable=SC2086
    train half 1 train "$T/csr" $usual $projects --stop-after 6
    train rest 1 train "$T/dense" --resume "$T/half/ck" --quiet --workers 1
    cd "$T" || exit 1
    for data in csr dense; do
        for model in whole rest; do
            exits 0 predict "$T/$model/ck" "$T/$data" --logits "$T/$model.npy" --quiet --workers 1
            numbers "$T/$model.npy" >"$T/$model-$data"
        done
    done
    for other in whole-dense rest-csr rest-dense; do
        close_to "$T/whole-csr" "$T/$other"
    done
    exits 0 evaluate "$T/whole/ck" "$T/csr" --json "$T/scores.json" --workers 1
    tr -d ' \n' <"$T/scores.json" | grep -q "\"test\":$(tail -n 1 "$T/whole/log" | sed 's/.*"test_accuracy":\([0-9.]*\).*/\1/')" ||
        die "$(cat "$T/scores.json")"
    exits 1 predict "$T/whole/ck" "$T/few" --workers 1 --quiet
    sentence 'was trained with 10 columns of features, and ' "$T/err"
    exits 2 train "$T/csr" --resume "$T/half/ck" --project-features 7 --workers 1
    sentence '--project-features 7: ' "$T/err"
    exits 2 train "$T/csr" --resume "$T/half/ck" --seed 6 --workers 1
    sentence "--seed 6: the features of $T/half/ck were projected with seed 5 (expected the same)" "$T/err"
}

# Features are dense, of the projected width: in the memory plan, too.
plan() {
    exits 0 plan "$T/csr" --project-features 6 --ranks 2
    exits 0 plan --like arxiv --project-features 6 --ranks 2
    # shellcheck disable=SC2086
    train csr 1 train "$T/csr" $usual $projects
    # shellcheck disable=SC2086
    train ready 1 train "$T/ready" $usual --normalize-features none
    for data in csr ready; do
        head -n 1 "$T/$data/log" | grep -o '"planned_bytes":{[^}]*}' >"$T/plan-$data"
        [ -s "$T/plan-$data" ] || die "no plan in the log"
    done
    cmp "$T/plan-csr" "$T/plan-ready" || die "$(cat "$T/plan-csr" "$T/plan-ready")"
}

refusals() {
    exits 2 train "$T/csr" --project-features 6 --feature-form csr
    sentence '--project-features 6: a projection leaves no zeros' "$T/err"
    exits 2 train "$T/dense" --project-features 6 --normalize-features standard
    sentence 'expected --normalize-features none, l1 or l2' "$T/err"
    cp -r "$T/dense" "$T/uneven"
    python3 - "$T/uneven/features.npy" <<'PYTHON' || die "no features"
import struct, sys
data = open(sys.argv[1], "rb").read()
x = struct.unpack("<1500f", data[-6000:])
open(sys.argv[1], "wb").write(data[:-6000] + struct.pack("<1500f", *[1e3 * v + 1 if k % 10 == 4 else v + 1 for k, v in enumerate(x)]))
PYTHON
    exits 2 train "$T/uneven" --project-features 6
    sentence 'are mixed before they could be standardised' "$T/err"
    refused 'the features are the vertices themselves (expected columns of features)' train "$karate" --project-features 6
    cp -r "$T/csr" "$T/infinite"
    printf '\000\000\200\177' | dd of="$T/infinite/features_data.npy" bs=1 seek=128 conv=notrunc 2>/dev/null
    exits 1 train "$T/infinite" --project-features 6 --normalize-features none
    sentence 'infinite/features_data.npy: ' "$T/err"
}

data
check "the projection of another program" formula
check "distributions" distributions
check "checkpoints" checkpoints
check "memory plan" plan
check "refusals" refusals
finish
