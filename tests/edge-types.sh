#!/bin/sh
# Relations stay with their edges, and trainings read them or say why not (tests/edge-types.py).
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

relations() {
    mkdir "$T/$1"
    python3 "${top_srcdir:-${srcdir:-.}}/tests/edge-types.py" "$1" "$STARLING" "$T/$1" || die "relations are wrong"
}
check "convert keeps relations with their edges" relations convert
check "wrong relations are refused" relations refuse
check "trainings read relations" relations train
finish
