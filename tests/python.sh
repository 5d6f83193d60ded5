#!/bin/sh
# The Python package: pytest, in an interpreter that has NumPy and pytest, $SL_PYTHON or python3; with PyTorch Geometric, also
# against it. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
[ -z "$SL_SANITIZED" ] || { echo "no interpreter with the sanitizer's library"; exit 77; }
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

# Splits without a seed: one rank says so, and none trains.
unlike() {
    [ -n "$MPIRUN" ] || skip "no MPI"
    cat >"$T/unlike.py" <<'END'
import sys
import numpy as np
import starling
rank, n = starling.rank(), 60
ring = np.arange(n), (np.arange(n) + 1) % n
labels = np.arange(n) % 3

def graph(seed):
    mask = np.random.default_rng(seed).permutation(n) < 30
    return starling.Graph(np.arange(n + 1), ring[1], labels=labels, masks={"train": mask})

def refused(what, call):
    try:
        call()
    except starling.Error as error:
        said = str(error)
        assert "rank 1 on host" in said and what in said if rank else said == "another rank has the reason", said
    else:
        raise AssertionError(what)

refused("other training vertices than rank 0", lambda: starling.train(graph(rank), epochs=2))
refused("has --epochs 3, and rank 0", lambda: starling.train(graph(0), epochs=2 + rank))
model = starling.train(graph(0), epochs=2, quiet=rank == 0)
refused("other training vertices than rank 0", lambda: model.predict(graph(rank)))
refused("the command predict, and rank 0",
        lambda: model.predict(graph(0)) if rank else starling.train(graph(0), epochs=2))
open(f"{sys.argv[1]}.{rank}", "w").close() # a file of each rank: mpirun joins words of ranks as it likes
END
    timeout 120 "$MPIRUN" -n 2 "$python" "$T/unlike.py" "$T/good" >"$T/words" 2>&1 || die "$(cat "$T/words")"
    [ -e "$T/good.0" ] && [ -e "$T/good.1" ] || die "$(cat "$T/words")"
}

check "graphs, training, models, errors" passes "not pyg and not dgl"
check "PyTorch Geometric and DGL" passes "pyg or dgl"
check "two ranks" ranks
check "ranks with other graphs and options" unlike
finish
