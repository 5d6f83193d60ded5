#!/bin/sh
# The notebook of the first hour: every cell runs, and its outputs are right. In an interpreter that has NumPy, nbconvert and
# ipykernel, $SL_PYTHON or python3. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
[ -z "$SL_SANITIZED" ] || { echo "no interpreter with the sanitizer's library"; exit 77; }
python=${SL_PYTHON:-${SL_PEER_PYTHON:-python3}}
python=$(command -v "$python" || echo "$python") # whatever PATH a launcher has
"$python" -c 'import numpy, nbconvert, ipykernel' 2>/dev/null || { echo "no NumPy, nbconvert or ipykernel in $python"; exit 77; }
notebook=${karate%/karate}/first_hour.ipynb
package=${karate%/examples/karate}/python
STARLING_LIBRARY=$(dirname "$STARLING")/.libs/libstarling.so
[ -e "$STARLING_LIBRARY" ] || { echo "no shared library"; exit 77; }
# The kernel is this interpreter, whatever kernels the user has.
JUPYTER_DATA_DIR=$T/data JUPYTER_CONFIG_DIR=$T/config JUPYTER_RUNTIME_DIR=$T/runtime IPYTHONDIR=$T/ipython MPLCONFIGDIR=$T/mpl
export STARLING_LIBRARY JUPYTER_DATA_DIR JUPYTER_CONFIG_DIR JUPYTER_RUNTIME_DIR IPYTHONDIR MPLCONFIGDIR
PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 JUPYTER_PREFER_ENV_PATH=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE JUPYTER_PREFER_ENV_PATH

stored() {
    "$python" - "$notebook" <<'END' || die "$notebook has outputs, or not 8 to 15 cells"
import json, sys
cells = json.load(open(sys.argv[1], encoding="utf-8"))["cells"]
sys.exit(not 8 <= len(cells) <= 15 or any(cell.get("outputs") or cell.get("execution_count") for cell in cells))
END
}

# A copy in a folder of its own runs there; the words of its cells are in $T/NAME/words.
executes() { # NAME
    mkdir "$T/$1"
    cp "$notebook" "$T/$1/hour.ipynb"
    (cd "$T/$1" && timeout 300 "$python" -m nbconvert --to notebook --execute --output ran hour.ipynb) >"$T/$1/log" 2>&1 ||
        die "$(tail -n 40 "$T/$1/log")"
    "$python" - "$T/$1/ran.ipynb" >"$T/$1/words" <<'END' || die "a cell did not run: $(cat "$T/$1/words")"
import json, sys
cells = [cell for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
outputs = [output for cell in cells for output in cell["outputs"]]
for output in outputs:
    print("".join(output.get("text", [])), end="")
sys.exit(any(cell["execution_count"] is None for cell in cells) or any(o["output_type"] == "error" for o in outputs))
END
    value "$T/$1/words" 'test accuracy of the training' >"$T/$1/training"
    value "$T/$1/words" 'test accuracy of the prediction' >"$T/$1/prediction"
    close_to "$T/$1/training" "$T/$1/prediction"
    value "$T/$1/words" 'largest difference of logits' | awk '{ exit !($1 >= 0 && $1 < 1e-4) }' || die "$(cat "$T/$1/words")"
    grep -qx 'same logits from the checkpoint True' "$T/$1/words" || die "$(cat "$T/$1/words")"
    [ -s "$T/$1/first_hour.ckpt" ] || die "no checkpoint"
}

# The number behind a text, which is there once.
value() { # FILE TEXT
    [ "$(grep -c "^$2 " "$1")" -eq 1 ] || die "not one \"$2\": $(cat "$1")" >&2
    sed -n "s/^$2 //p" "$1"
}

with_all() {
    executes all
    for module in matplotlib torch_geometric; do
        "$python" -c "import $module" 2>/dev/null || echo "skip  no $module"
    done
    ! grep '^largest difference, plain' "$T/all/words" >"$T/line" ||
        awk '{ exit !($4 < 1e-4 && $6 < 1e-4) }' "$T/line" || die "$(cat "$T/line")"
}

without() {
    mkdir "$T/none"
    for module in matplotlib torch_geometric; do
        echo "raise ImportError('$module')" >"$T/none/$module.py"
    done
    PYTHONPATH=$T/none:$package
    executes less
    grep -q '^no curves: ' "$T/less/words" || die "$(cat "$T/less/words")"
    grep -q '^no layers to patch: ' "$T/less/words" || die "$(cat "$T/less/words")"
}

check "no outputs are stored" stored
check "every cell, with what is installed" with_all
check "every cell, without matplotlib and PyTorch Geometric" without
finish
