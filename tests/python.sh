#!/bin/sh
# The Python package: pytest, in an interpreter that has NumPy and pytest, $SL_PYTHON or python3; with PyTorch Geometric, also
# against it. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
python=${SL_PYTHON:-${SL_PEER_PYTHON:-python3}}
python=$(command -v "$python" || echo "$python") # whatever PATH a launcher has
"$python" -c 'import numpy, pytest' 2>/dev/null || { echo "no NumPy or no pytest in $python"; exit 77; }
package=${karate%/examples/karate}/python
STARLING_LIBRARY=$(dirname "$STARLING")/.libs/libstarling.so
[ -e "$STARLING_LIBRARY" ] || { echo "no shared library"; exit 77; }
export STARLING STARLING_LIBRARY
PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE

passes() { # PATTERN
    (cd "$T" && timeout 300 "$python" -m pytest -q -p no:cacheprovider -rs "$package/tests" -k "$1") >"$T/words" 2>&1 ||
        die "$(cat "$T/words")"
    sed -n 's/^SKIPPED [^ ]* *[^ ]* /skip  /p' "$T/words"
}

# The same bits on each number of ranks; predictions on rank 0.
ranks() {
    [ -n "$MPIRUN" ] || skip "no MPI"
    cat >"$T/ranks.py" <<'END'
import sys
import starling
graph = starling.Graph.open(sys.argv[1])
model = starling.train(graph, epochs=10, tiles=4, distribution="1d")
classes = model.predict(graph).classes
assert (classes is None) == (starling.rank() > 0)
if starling.rank() == 0:
    print(repr(model.result.loss), classes.sum())
END
    for r in 1 2; do
        timeout 120 "$MPIRUN" -n $r "$python" "$T/ranks.py" "$karate" >"$T/ranks.$r" 2>&1 || die "$(cat "$T/ranks.$r")"
    done
    [ -s "$T/ranks.1" ] || die "nothing"
    cmp "$T/ranks.1" "$T/ranks.2" || die "$(cat "$T/ranks.1" "$T/ranks.2")"
}

check "graphs, training, models, errors" passes "not pyg and not dgl"
check "PyTorch Geometric and DGL" passes "pyg or dgl"
check "two ranks" ranks
finish
