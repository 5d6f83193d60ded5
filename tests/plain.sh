#!/bin/sh
# Names with control characters, in files, paths and options: a terminal gets none of them, nor does a page. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
cd "$T" || exit 1
# A title of the window, a cleared screen, ISO 6429 in one character, half a character, and a forged line.
evil=$(printf 'A\033]0;owned\007\033[2JB\302\2331mC\377\371\200\200\200D\nstarling: all is well')
shown='A\x1b]0;owned\x07\x1b[2JB\xc2\x9b1mC\xff\xf9\x80\x80\x80D'
# JSON has no bytes that are no UTF-8.
word='A\u001b]0;owned\u0007\u001b[2JB\u009b1mC'

# harmless FILE: no control character but newlines and tabs, and no byte that is no UTF-8.
harmless() {
    tr -d '\n\t\040-\176\200-\377' <"$1" >rest
    [ ! -s rest ] || die "control characters in $1: $(od -c rest | head -n 3)"
    ! grep -q "$(printf '\302[\200-\237]')" "$1" || die "ISO 6429 in $1: $(od -c "$1" | head)"
    iconv -f UTF-8 -t UTF-8 "$1" >/dev/null || die "no UTF-8 in $1"
}

# said STATUS TEXT ARGUMENT ...: the program exits so, with TEXT in what it prints, and nothing that a terminal obeys.
said() {
    status=$1 text=$2
    shift 2
    exits "$status" "$@"
    harmless out
    harmless err
    grep -qF -e "$text" out err || die "no $text: $(cat out err)"
    [ "$(grep -c '^starling: all is well' err)" -eq 0 ] || die "a forged line: $(cat err)"
}

arguments() {
    said 2 "$shown\\x0astarling: all is well" "$evil"
    said 2 "$shown" train "$karate" --model "$evil"
    said 2 "$shown" train "$karate" "--$evil" 3
    said 1 "$shown" train "$evil"
    said 1 "$shown" info "$evil/nowhere"
    said 1 "$shown" evaluate "$evil" "$karate"
    said 1 "$shown" train "$karate" --epochs 1 --checkpoint "$evil/ck"
    said 2 "$shown" bench "$evil"
    said 2 "$shown" help "$evil"
}

config() {
    printf '{"model": "%s"}' "$word" >run.json
    said 1 'A\x1b]0;owned\x07\x1b[2JB\xc2\x9b1mC' train "$karate" --config run.json
    printf '{"%s": 1}' "$word" >run.json
    said 1 'A\x1b]0;owned\x07\x1b[2JB\xc2\x9b1mC' train "$karate" --config run.json
    printf 'model = "%s"\n' "$word" >run.toml
    said 1 'A\x1b]0;owned\x07' train "$karate" --config run.toml
}

# The names of a dataset and its classes, in tables, notes, progress and the log's page.
dataset() {
    cp -r "$karate" set
    printf '{"name": "%s", "class_names": ["one", "%s", "three", "four"]}' "$word" "$word" >set/meta.json
    said 0 '\x1b]0;owned\x07' info set
    said 0 '\x1b]0;owned\x07' train set --epochs 3 --verbose --checkpoint ck --log log
    said 0 '\x1b]0;owned\x07' evaluate ck set --json scores.json
    said 0 '\x1b]0;owned\x07' plan set --ranks 2
    # Files for programs keep the names.
    grep -qiF '\u001b]0;owned\u0007' log && grep -qiF '\u001b]0;owned\u0007' scores.json || die "another name in JSON"
}

page() {
    command -v gnuplot >/dev/null || skip "no gnuplot"
    exits 0 train set --epochs 3 --checkpoint "$evil.ck" --log "$evil"
    exits 0 train set --epochs 3 --hidden 8 --log other
    said 0 '' report "$evil" other --output page.html
    harmless page.html
    grep -qF '\x1b]0;owned\x07' page.html || die "no name in the page"
    rm "$evil"
}

path() {
    cp -r "$karate" "$evil"
    said 0 "$shown" info "$evil"
    said 0 "$shown" train "$evil" --epochs 1 --verbose
    said 0 "$shown" convert "$karate" "$evil.npz" --verbose
    said 0 "written to p.npy" partition "$evil" --method metis --parts 2 --out p.npy
}

files() {
    printf '1 2\n2 3\n3 A\033[2JB\n' >edges.txt
    said 1 'A\x1b[2JB' info edges.txt
    printf 'source,target\n1,2\n2,\033[2JB\n' >edges.csv
    said 0 '\x1b[2JB' info edges.csv
    mkdir tables
    printf 'id,\033[2JB,label\n1,2,\033[2JC\n2,\033[2JD,x\n3,1,x\n' >tables/nodes.csv
    printf 'source,target\n1,2\n2,3\n' >tables/edges.csv
    said 1 "column '\x1b[2JB': '\x1b[2JD' is no" info tables
    printf 'id,\033[2JB,label\n1,2,\033[2JC\n2,3,x\n3,1,x\n' >tables/nodes.csv
    said 0 'x1b[2JC' info tables
}

# Characters of several bytes pass, also where a buffer of the output ends between their bytes.
letters() {
    for shift in '' a ab abc; do
        cp -r "$karate" "set$shift"
        printf '{"name": "%s", "class_names": ["a", "b", "c", "d"]}' \
            "$shift$(awk 'BEGIN { for (i = 0; i < 1500; i++) printf "\303\251\342\202\254\360\237\230\200" }')" >"set$shift/meta.json"
        exits 0 info "set$shift"
        grep -qF "$shift$(awk 'BEGIN { for (i = 0; i < 1500; i++) printf "\303\251\342\202\254\360\237\230\200" }') (" out ||
            die "other letters"
    done
}

# A step that takes over 0.2 s is drawn.
bar() {
    on_terminal stderr generate community "$evil-graph" --vertices 100000 --classes 4 --degree 8 --features 64
    grep -qF '\x1b]0;owned' screen || die "no bar: $(od -c screen | head)"
    ! grep -qF "$(printf '\033]0;owned')" screen || die "a title for the window"
}

check "arguments" arguments
check "values and names of --config" config
check "a dataset's names" dataset
check "pages" page
check "paths" path
check "vertices, columns and labels of text files" files
check "bars" bar
check "letters of several bytes" letters
finish
