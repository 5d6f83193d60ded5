#!/bin/sh
# What a user sees: the picture of tasks, and progress on a terminal and elsewhere. One line per case.
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
    echo mine >"$T/picture.SVG.dot"
    exits 0 train "$karate" --tiles 3 --epochs 3 --dag "$T/picture.SVG"
    [ "$(cat "$T/picture.SVG.dot")" = mine ] || die "another file was written"
    rm "$T/picture.SVG.dot"
    [ "$(grep -c 'class="node"' "$T/picture.SVG")" -eq "$(grep -c 'label=' "$T/text.dot")" ] || die "other tasks"
    [ "$(grep -c 'class="edge"' "$T/picture.SVG")" -eq "$(grep -c -- '->' "$T/text.dot")" ] || die "other arrows"
    grep -q '>spmm_set<' "$T/picture.SVG" || die "no name of a task"
    ! ls "$T"/picture.SVG.* 2>/dev/null || die "the text is still there"
}

# text_stays SVG: in a new file, $text, which the error names.
text_stays() {
    text=$(sed -n 's/.*; \(.*\.dot\) has the text$/\1/p' "$T/err")
    case $text in "$1".[1-9]*.dot) ;; *) die "no name of the text: $(cat "$T/err")" ;; esac
    grep -q '^digraph' "$text" || die "no text"
}

# The text of a graph that takes too long stays.
too_large() {
    command -v dot >/dev/null 2>&1 || skip "no dot to draw"
    exits 1 train "$karate" --tiles 30 --layers 4 --epochs 3 --dag "$T/large.svg" --quiet
    sentence "--dag $T/large.svg: " "$T/err"
    sentence " tasks and arrows (expected at most 5000: fewer tiles or layers); $T/large.svg." "$T/err"
    text_stays "$T/large.svg"
    [ "$(grep -c 'label=' "$text")" -gt 600 ] || die "no text"
    [ ! -e "$T/large.svg" ] || die "half a picture"
}

# A program that fails, and one that does not end.
dot_fails() {
    mkdir -p "$T/bin"
    printf '#!/bin/sh\necho a word of dot\nexit 3\n' >"$T/bin/dot"
    chmod +x "$T/bin/dot"
    PATH=$T/bin:$PATH "$STARLING" train "$karate" --epochs 3 --dag "$T/f.svg" --quiet 2>"$T/err" && die "no failure"
    sentence "$T/f.svg: dot failed: a word of dot" "$T/err"
    text_stays "$T/f.svg"
    [ ! -e "$T/f.svg" ] || die "half a picture"
}

# ---- Progress ----

# on_terminal COLUMNS ARGUMENT ...: what the program writes to a terminal, a line for each drawing, in $T/seen. It may make $T/new.
on_terminal() {
    rm -rf "$T/new"
    command -v script >/dev/null 2>&1 || skip "no script(1) to make a terminal"
    columns=$1
    shift
    echo "stty cols $columns; exec '$STARLING' $*" >"$T/command"
    TERM=${terminal-xterm} timeout 120 script -qec "sh $T/command" "$T/typescript" </dev/null >/dev/null 2>&1 || die "exit status $?: $*"
    sed '/^Script \(started\|done\)/d' "$T/typescript" | tr '\r' '\n' >"$T/seen"
}

# A graph of 2^$scale vertices, and its edges as text.
make_graph() {
    export scale
    rm -rf "$T/rmat" "$T/edges.txt"
    "$STARLING" generate rmat "$T/rmat" --scale "$scale" --edge-factor 8 --features 8 --quiet || die "no graph"
    [ -z "$text" ] && return
    exits 0 convert "$T/rmat" "$T/edges.txt"
    gzip -kf1 "$T/edges.txt"
}

# shows PATTERN ARGUMENT ...: a bar. Short steps have none: the graph grows until it is large enough for this machine.
shows() {
    pattern=$1
    shift
    while on_terminal "${width:-100}" "$@" && ! grep -qE "$pattern" "$T/seen"; do
        scale=$((scale + 1))
        [ "$scale" -le 23 ] || die "no $pattern: $(cat -v "$T/seen")"
        make_graph
    done
}

esc=$(printf '\033')
text=

# Every long step is there, in colours, within the width; at the end the line is empty.
shown() {
    scale=16
    make_graph
    # shellcheck disable=SC2016
    width=60 shows "^\[$esc\[32m#+$esc\[0m\.+\] [0-9]+ %  [0-9]+ s left  generating /" generate rmat "$T/new" --scale '$scale' --threads 1
    plain=$(sed "s/$esc\[[0-9]*[mK]//g" "$T/seen")
    echo "$plain" | grep '^\[' | awk 'length($0) > 59 { print; bad = 1 } END { exit bad }' || die "wider than the terminal"
    shows "ordering the vertices, rabbit" convert "$T/rmat" "$T/new" --order rabbit
    shows "\] [0-9]+ %  [0-9]+ s left  cutting into 4 parts, hdrf" partition "$T/rmat" --method hdrf --parts 4 --out "$T/parts.npy"
    shows "reading rows, making tiles" train "$T/rmat" --epochs 1 --layers 1
    shows "\] [0-9]+ %  [0-9]+ s left  measuring the graph" info "$T/rmat"
}

# The bytes of a text, compressed or not, are its parts.
read_text() {
    scale=15 text=yes
    make_graph
    for file in edges.txt edges.txt.gz; do
        shows "opening $T/$file" convert "$T/$file" "$T/new"
    done
}

# Colours and bars are for terminals that want them.
plain() {
    # shellcheck disable=SC2016
    set -- generate rmat "$T/new" --scale '$scale' --threads 1
    scale=16
    make_graph
    NO_COLOR=1 shows '^\[#' "$@"
    ! grep -q "$esc\[[0-9]*m" "$T/seen" || die "colours with NO_COLOR"
    NO_COLOR='' shows "^\[$esc\[32m#" "$@"
    terminal=dumb on_terminal 100 "$@"
    ! grep -q '\[' "$T/seen" || die "a bar on a dumb terminal"
    on_terminal 100 "$@" --quiet
    ! grep -q . "$T/seen" || die "something with --quiet: $(cat -v "$T/seen")"
    rm -rf "$T/new"
    exits 0 generate rmat "$T/new" --scale "$scale" --threads 1
    [ ! -s "$T/err" ] || die "something on a pipe: $(cat "$T/err")"
    NO_COLOR='' on_terminal 100 train "$karate" --epochs 3000 --patience 0
    grep -qE "^\[$esc\[32m#+$esc\[0m\.+\] epoch " "$T/seen" || die "no colours in the bar of epochs"
}

# took STEP ...: each is noted once with its seconds.
took() {
    for step; do
        [ "$(grep -cE "^starling: +$step: [0-9]+\.[0-9]{3} s$" "$T/err")" -eq 1 ] || die "not once $step: $(cat "$T/err")"
    done
}

verbose() {
    exits 0 generate community "$T/g" --vertices 300 --verbose
    took "generating $T/g" "writing $T/g"
    exits 0 convert "$T/g" "$T/h" --order rcm --verbose
    took "opening $T/g" "reading $T/g" "ordering the vertices, rcm" "writing $T/h"
    exits 0 partition "$T/g" --method libra --parts 2 --out "$T/p.npy" --verbose
    took "reading $T/g" "cutting into 2 parts, libra"
    exits 0 train "$T/g" --epochs 3 --tiles 2 --checkpoint "$T/ck" --log "$T/log" --verbose
    took "opening $T/g" "choosing an order of the vertices" "choosing a distribution" "planning the memory" "reading rows, making tiles"
    grep -qE '^  tiles +2, in blocks of [0-9]+ columns$' "$T/out" || die "no tiles: $(cat "$T/out")"
    grep -qE '^  first product  (gemm|spmm|aggregated) (gemm|spmm)$' "$T/out" || die "no products: $(cat "$T/out")"
    reason=$(sed -n 's/.*"order_reason":"\([^"]*\)".*/\1/p' "$T/log")
    grep -qxF "  order          $reason" "$T/out" || die "another order than $reason: $(cat "$T/out")"
    total=$(sed -n 's/^  total *//p' "$T/out")
    exits 0 train "$T/g" --epochs 3 --tiles 2 --plan
    [ "$total" = "$(sed -n 's/^  total *//p' "$T/out")" ] || die "another plan: $total, $(cat "$T/out")"
    exits 0 evaluate "$T/ck" "$T/g" --verbose
    took "reading rows, making tiles" predicting
    exits 0 predict "$T/ck" "$T/g" --output "$T/classes.npy" --verbose
    took "reading rows, making tiles" predicting
    exits 0 plan "$T/g" --ranks 2 --verbose
    took "opening $T/g" "cutting the graph" "predicting epochs"
    exits 0 train "$T/g" --epochs 3 --verbose --quiet
    [ ! -s "$T/out" ] && [ ! -s "$T/err" ] || die "not quiet: $(cat "$T/out" "$T/err")"
}

# ---- The log as a table ----

# The same numbers as in a log of JSON lines.
table() {
    command -v python3 >/dev/null 2>&1 || skip "no python3 to read the table"
    set -- train "$karate" --epochs 12 --eval-every 5 --patience 0 --metric macro-f1 --seed 4
    exits 0 "$@" --log "$T/run.csv" --stop-after 7 --checkpoint "$T/go-on"
    sed '/^7,/{p;s/^7,/8,/;}' "$T/run.csv" >"$T/killed.csv" # a run that was killed later than its checkpoint, inside a row
    printf '9,0.5,0.' >>"$T/killed.csv"
    mv "$T/killed.csv" "$T/run.csv"
    exits 0 train "$karate" --resume "$T/go-on" --epochs 12 --log "$T/run.csv"
    exits 0 "$@" --log "$T/run.jsonl" --stop-after 7 --checkpoint "$T/go-on"
    exits 0 train "$karate" --resume "$T/go-on" --epochs 12 --log "$T/run.jsonl"
    python3 - "$T/run.csv" "$T/run.jsonl" <<'PYTHON' || die "not the numbers of the log: $(cat "$T/run.csv")"
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1])))
epochs = [e for e in map(json.loads, open(sys.argv[2])) if e["event"] == "epoch"]
assert [int(r["epoch"]) for r in rows] == [e["epoch"] for e in epochs] and len(rows) >= 12
names = {f"{s}_score": f"{s}_macro_f1" for s in ("train", "val", "test")}
for row, epoch in zip(rows, epochs):
    for name, text in row.items():
        value = epoch.get(names.get(name, name))
        if "seconds" in name:
            assert (text == "") == (value is None), (name, row)
        else:
            assert (float(text) if text else None) == value, (name, text, value)
assert any(r["val_score"] for r in rows) and any(not r["val_score"] for r in rows)
PYTHON
    exits 0 train "$karate" --epochs 3 --log "$T/run.csv"
    [ "$(wc -l <"$T/run.csv")" -eq 4 ] || die "rows of another run"
    echo "a,b" >"$T/other.csv"
    exits 1 train "$karate" --resume "$T/go-on" --epochs 20 --log "$T/other.csv"
    sentence "--log $T/other.csv: has other columns (expected a table of the run that goes on, or a new name)" "$T/err"
    exits 2 train "$karate" --epochs 3 --log "$T/r.csv" --report "$T/r.html"
    sentence "--log $T/r.csv: --report draws a log of JSON lines (expected another ending than .csv)" "$T/err"
    exits 1 train "$karate" --epochs 3 --lr 1e6 --optimizer sgd --momentum 0 --log "$T/broken.csv" --epochs 400
    tail -n 1 "$T/broken.csv" | grep -qE '^[0-9]+,(-?nan|inf),' || die "no word of a broken loss: $(tail -n 2 "$T/broken.csv")"
}

check "--dag FILE.svg without dot" without_dot
check "--dag FILE.svg" drawn
check "a graph that is too large to draw" too_large
check "dot fails" dot_fails
check "progress on a terminal" shown
check "progress of reading text" read_text
check "no bar, no colours where none are wanted" plain
check "--verbose" verbose
check "--log FILE.csv" table
finish
