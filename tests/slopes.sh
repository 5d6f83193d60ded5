#!/bin/sh
# Gradients of whole models are the slopes of the loss (tests/slopes.py).
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

slopes() {
    python3 "${top_srcdir:-${srcdir:-.}}/tests/slopes.py" "$STARLING" "$T" || die "a gradient is wrong"
}
check "gradients are slopes of the loss" slopes
finish
