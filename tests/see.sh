#!/bin/sh
# What a user sees of a run: the picture of tasks. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1

# ---- The picture of tasks ----

without_dot() {
    mkdir -p "$T/nothing"
    PATH=$T/nothing "$STARLING" train "$karate" --epochs 3 --dag "$T/e.svg" >"$T/out" 2>"$T/err" && die "went on without dot"
    sentence 'dot is not there, and draws the tasks of --dag FILE.svg (expected it in PATH; Debian: graphviz)' "$T/err"
    ! ls "$T"/e.* 2>/dev/null || die "a file"
}

# The same tasks and arrows as in the text.
drawn() {
    command -v dot >/dev/null 2>&1 || skip "no dot to draw"
    exits 0 train "$karate" --tiles 3 --epochs 3 --dag "$T/text.dot"
    exits 0 train "$karate" --tiles 3 --epochs 3 --dag "$T/picture.SVG"
    [ "$(grep -c 'class="node"' "$T/picture.SVG")" -eq "$(grep -c 'label=' "$T/text.dot")" ] || die "other tasks"
    [ "$(grep -c 'class="edge"' "$T/picture.SVG")" -eq "$(grep -c -- '->' "$T/text.dot")" ] || die "other arrows"
    grep -q '>spmm_set<' "$T/picture.SVG" || die "no name of a task"
    ! ls "$T"/picture.SVG.* 2>/dev/null || die "the text is still there"
}

# The text of a graph that takes too long stays.
too_large() {
    command -v dot >/dev/null 2>&1 || skip "no dot to draw"
    exits 1 train "$karate" --tiles 30 --layers 4 --epochs 3 --dag "$T/large.svg" --quiet
    sentence "--dag $T/large.svg: " "$T/err"
    sentence " tasks and arrows (expected at most 5000: fewer tiles or layers); $T/large.svg.dot has the text" "$T/err"
    [ "$(grep -c 'label=' "$T/large.svg.dot")" -gt 600 ] || die "no text"
    [ ! -e "$T/large.svg" ] || die "half a picture"
}

# A program that fails, and one that does not end.
dot_fails() {
    mkdir -p "$T/bin"
    printf '#!/bin/sh\necho a word of dot\nexit 3\n' >"$T/bin/dot"
    chmod +x "$T/bin/dot"
    PATH=$T/bin:$PATH "$STARLING" train "$karate" --epochs 3 --dag "$T/f.svg" --quiet 2>"$T/err" && die "no failure"
    sentence "$T/f.svg: dot failed: a word of dot" "$T/err"
    [ -s "$T/f.svg.dot" ] || die "no text"
    [ ! -e "$T/f.svg" ] || die "half a picture"
}

check "--dag FILE.svg without dot" without_dot
check "--dag FILE.svg" drawn
check "a graph that is too large to draw" too_large
check "dot fails" dot_fails
finish
