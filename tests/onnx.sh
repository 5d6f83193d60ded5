#!/bin/sh
# starling export: ONNX models of every model beside the logits of training (tests/onnx-models.py), checkpoints for libstarling-predict, and
# what is refused. One line per case. $SL_PYTHON (python3) is an interpreter that has onnx and onnxruntime; without them one case
# is skipped.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
build=$(cd "$(dirname "$STARLING")" && pwd)
source=$(cd "${karate%/examples/karate}" && pwd)
python=${SL_PYTHON:-${SL_PEER_PYTHON:-python3}}

onnx() {
    "$python" -c 'import onnx, onnxruntime' >/dev/null 2>&1 || skip "$python has no onnx and onnxruntime"
    mkdir "$T/models"
    timeout 300 "$build/tests/predict_models" "$T/models" >"$T/out" 2>"$T/err" || die "$(cat "$T/err")"
    OMP_NUM_THREADS=1 timeout 300 "$python" "$source/tests/onnx-models.py" "$STARLING" "$T/models" >"$T/out" 2>"$T/err" ||
        die "$(cat "$T/out" "$T/err")"
    [ "$(wc -l <"$T/out")" -eq 41 ] || die "other models: $(cat "$T/out")"
}

model() {
    exits 0 train "$karate" --epochs 4 --hidden 3 --keep best --eval-every 1 --checkpoint "$T/model" --quiet
}

# A small checkpoint predicts the same, also with a forward program that was taken out.
checkpoint() {
    model
    exits 0 export "$T/model" --checkpoint "$T/small"
    grep -q "^$T/model: gcn of [0-9]* steps, from 34 features to 2 classes$" "$T/out" || die "$(cat "$T/out")"
    ! grep -q '\.moment1"\|\.best"' "$T/small" || die "state is left"
    for c in model small; do
        exits 0 predict "$T/$c" "$karate" --logits "$T/$c.npy" --quiet
    done
    cmp "$T/model.npy" "$T/small.npy" || die "other logits"
}

# edited FROM TO STATEMENT: a copy of a checkpoint whose description the statement of Python changes.
edited() {
    command -v python3 >/dev/null || skip "no python3"
    python3 - "$@" <<'END'
import json, struct, sys
bytes = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", bytes[:8])[0]
header = json.loads(bytes[8:8 + size])
description = json.loads(header["__metadata__"]["description"])
exec(sys.argv[3])
del header["__metadata__"]["crc32"]
header["__metadata__"]["description"] = json.dumps(description)
text = json.dumps(header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + bytes[8 + size:])
END
}

# Without a forward program, as an older version wrote it.
older() {
    model
    edited "$T/model" "$T/old" 'del description["forward"]'
    exits 0 export "$T/old" --onnx "$T/old.onnx" --checkpoint "$T/new" --quiet
    silent
    exits 0 export "$T/model" --onnx "$T/model.onnx" --quiet
    cmp "$T/old.onnx" "$T/model.onnx" || die "other models"
    grep -q 'forward' "$T/new" || die "no forward program"
    edited "$T/model" "$T/yet" 'description["forward"] = {"refused": "no steps yet"}'
    exits 0 export "$T/yet" --onnx "$T/yet.onnx" --checkpoint "$T/new" --quiet
    cmp "$T/yet.onnx" "$T/model.onnx" || die "other models"
    ! grep -q 'refused' "$T/new" || die "no forward program"
}

# The program that training stored is exported, also where another version would make another one.
stored() {
    model
    edited "$T/model" "$T/stored" 'description["forward"]["model"] = "another"'
    exits 0 export "$T/stored" --onnx "$T/stored.onnx"
    grep -q "^$T/stored: another of " "$T/out" || die "$(cat "$T/out")"
    edited "$T/model" "$T/stored" 'description["forward"]["steps"][1]["of"] = [9]'
    refused 1 "$T/stored: step 1 of its forward program has a value" export "$T/stored" --onnx "$T/y"
    edited "$T/model" "$T/stored" 'description["forward"] = {"refused": "a layer of its own"}; description["configuration"]["model"] = "own"'
    refused 2 "$T/stored: a layer of its own" export "$T/stored" --onnx "$T/y"
    [ ! -e "$T/y" ] || die "something was written"
}

# refused STATUS TEXT ARGUMENT ...
refused() {
    status=$1 text=$2
    shift 2
    exits "$status" "$@"
    sentence "$text" "$T/err"
}

silent() {
    [ ! -s "$T/out" ] && [ ! -s "$T/err" ] || die "$(cat "$T/out" "$T/err")"
}

refusals() {
    model
    refused 2 "expected --onnx FILE or --checkpoint FILE" export "$T/model"
    refused 2 "is the file that is read" export "$T/model" --onnx "$T/model"
    refused 2 "is the file that is read" export "$T/model" --checkpoint "$T/model"
    refused 2 "--onnx is empty" export "$T/model" --onnx ""
    refused 2 "--checkpoint is empty" export "$T/model" --onnx "$T/x" --checkpoint ""
    refused 2 "name one file" export "$T/model" --checkpoint "$T/x" --onnx "$T/x"
    refused 1 "$T/none: " export "$T/none" --onnx "$T/x"
    refused 1 "$T/none/x: " export "$T/model" --onnx "$T/none/x"
    exits 0 generate community "$T/graph" --vertices 200 --classes 3 --degree 5 --features 30 --seed 1
    exits 0 train "$T/graph" --epochs 2 --project-features 4 --checkpoint "$T/projected" --quiet
    refused 2 "$T/projected: --project-features 4: the model reads features that Starling projects" export "$T/projected" --onnx "$T/x"
    exits 0 train "$T/graph" --epochs 4 --submodels 2 --share none --checkpoint "$T/members" --quiet
    refused 2 "$T/members: --share none: the checkpoint has an ensemble" export "$T/members" --onnx "$T/x"
    [ ! -e "$T/x" ] || die "something was written"
}

check "ONNX models of every model" onnx
check "a checkpoint without state" checkpoint
check "a checkpoint of an older version" older
check "the stored program" stored
check "refused" refusals
finish
