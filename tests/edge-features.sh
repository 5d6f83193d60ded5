#!/bin/sh
# Edge features stay with their edges (tests/edge-features.py).
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

converts() {
    python3 "${top_srcdir:-${srcdir:-.}}/tests/edge-features.py" "$STARLING" "$T" || die "edge features are wrong"
}
check "convert keeps edge features with their edges" converts
finish
