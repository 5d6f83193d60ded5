#!/bin/sh
# Small compressed files of much text: reading takes no more memory than is promised (tests/packed.py).
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
[ -z "$SL_SANITIZED" ] || { echo "the sanitizer takes memory, too"; exit 77; }
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
program=$STARLING
[ -x "$(dirname "$STARLING")/.libs/$(basename "$STARLING")" ] && program=$(dirname "$STARLING")/.libs/$(basename "$STARLING")
python3 "${top_srcdir:-${srcdir:-.}}/tests/packed.py" "$program" "$T"
