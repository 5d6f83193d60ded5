#!/bin/sh
# Relations stay with their edges, and trainings read them or say why not (tests/edge-types.py).
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export PRTE_MCA_rmaps_default_mapping_policy

relations() {
    mkdir "$T/$1"
    python3 "${top_srcdir:-${srcdir:-.}}/tests/edge-types.py" "$1" "$STARLING" "$T/$1" || die "relations are wrong"
}
check "convert keeps relations with their edges" relations convert
check "wrong relations are refused" relations refuse
check "trainings read relations" relations train
finish
