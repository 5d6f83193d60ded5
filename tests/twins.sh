#!/bin/sh
# Every operation has a CUDA twin, or a line and a reason in docs/GPU.md, "Operations of the host"; a line there is such an
# operation. Codelets are made by the macros of codelets/codelet.h. Others do no work.
# Usage: twins.sh [SOURCE-TREE]. Prints what is missing.
cd "${1:-${top_srcdir:-.}}" || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

operations() { # MACRO ...
    for macro; do
        sed -n "s/^$macro(\([a-z0-9_]*\),.*/\1/p" codelets/*.c
    done | sort
}

operations SL_HOST_CODELET >"$scratch/host"
operations SL_CODELET SL_CODELET_ANY >"$scratch/both"
awk '/^## / { here = $0 == "## Operations of the host" }
    here && /^\| `/ {
        split($0, cell, "|")
        count = split(cell[2], name, "`")
        for (i = 2; i <= count; i += 2)
            print name[i] > (cell[3] ~ /[a-z]/ ? "/dev/stdout" : "/dev/stderr")
    }' docs/GPU.md 2>"$scratch/bare" | sort >"$scratch/listed"

{
    sed 's/^/docs\/GPU.md gives no reason: /' "$scratch/bare"
    comm -23 "$scratch/host" "$scratch/listed" | sed 's/$/ has no CUDA twin, and docs\/GPU.md does not list it/'
    comm -13 "$scratch/host" "$scratch/listed" | sed 's/$/ is in docs\/GPU.md, but is no operation of the host alone/'
    while read -r name; do
        grep -q "^extern \"C\" void ${name}_cuda(void \*buffers\[\]" codelets/*.cu || echo "no codelets/*.cu has ${name}_cuda"
    done <"$scratch/both"
    grep -nE 'struct starpu_codelet [a-z_]+ *= *\{|cpu_funcs' src/*/*.c graphs/*.c codelets/*.c | cut -d: -f1 | sort | uniq -c |
        while read -r count file; do
            [ "$(grep -c 'where = STARPU_NOWHERE' "$file")" -eq "$count" ] || echo "$file has a codelet of its own (expected SL_CODELET)"
        done
} >"$scratch/missing"
[ -s "$scratch/host" ] && [ -s "$scratch/both" ] || echo "no codelets" >>"$scratch/missing"
cat "$scratch/missing"
[ ! -s "$scratch/missing" ]
