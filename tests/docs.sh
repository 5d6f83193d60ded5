#!/bin/sh
# Runs the commands of README.md and docs/*.md: lines of code blocks that begin with "$ ". Each must end with status 0, and the
# lines below it must be in its output ("..." stands for any lines). Blocks of a page run in their order, in a folder with
# examples/, a graph20k of 2,000 vertices and an OGB folder arxiv. Trainings end after 3 epochs and have at most 512 hidden units;
# with SL_DOCS=all there are 20,000 vertices, 30 epochs and 4,096 units. But a block that prints numbers runs as it is written, and
# its output has these numbers, within one of the last digit shown.
# A comment before a block says otherwise:
#
#   <!-- not run: REASON -->      nobody can run it here
#   <!-- check-docs: REASON -->   only `make check-docs` runs it (SL_DOCS=all)
#   <!-- needs: NAME ... -->      programs or Python modules; without them it is not run
#   <!-- file: NAME -->           no commands: the file NAME of blocks below
#   <!-- shortened: REASON -->    only `make check-docs` compares its numbers and runs it as it is written
#
# tests/docs.sh PAGE ... runs some pages. One line per page; what did not run, and why, is at the end.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
source=$(cd "${karate%/examples/karate}" && pwd)
build=$(dirname "$STARLING")
all=${SL_DOCS:-}
python=${SL_PYTHON:-${SL_PEER_PYTHON:-$(command -v python3)}}
[ -z "$SL_SANITIZED" ] || python= # it has not the sanitizer's library
[ -n "$MPIRUN" ] || [ "$SL_TEST_MPI" != 1 ] || MPIRUN=$(command -v mpirun)
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export PRTE_MCA_rmaps_default_mapping_policy
STARLING_LIBRARY=$build/.libs/libstarling.so PYTHONPATH=$source/python PYTHONDONTWRITEBYTECODE=1
XDG_CACHE_HOME=$T/cache STARPU_HOME=${STARPU_HOME:-$T}
export STARLING_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE XDG_CACHE_HOME STARPU_HOME
seconds=180
[ "$all" != all ] || seconds=900

# ---- What commands find ----

# A program of the folder that is first in PATH.
program() { # NAME, its words on stdin
    { echo '#!/bin/sh'; cat; } >"$T/bin/$1"
    chmod +x "$T/bin/$1"
}

programs() {
    mkdir -p "$T/bin"
    # The last of two options counts.
    vertices=2000 hidden=512 epochs=3
    [ "$all" != all ] || vertices=20000 hidden=4096 epochs=30
    program starling <<END
case "\$SL_DOCS_WHOLE \$* " in
*" --help"* | whole*) ;;
" train "*)
    case " \$* " in *" --stop-after "*) ;; *) set -- "\$@" --stop-after $epochs ;; esac
    case " \$* " in *" --hidden "[0-9][0-9][0-9][0-9]*) set -- "\$@" --hidden $hidden ;; esac
    ;;
" generate community "*) set -- "\$@" --vertices $vertices ;;
esac
exec "$STARLING" "\$@"
END
    [ -z "$MPIRUN" ] || program mpirun <<END
exec "$MPIRUN" "\$@"
END
    [ -z "$python" ] || program python3 <<END
exec "$python" "\$@"
END
    PATH=$T/bin:$PATH
    export PATH
}

# An OGB folder like that of ogbn-arxiv: a graph of 300 vertices and 3 classes in two communities of features.
ogb_folder() { # FOLDER
    mkdir -p "$1/raw" "$1/split/time"
    awk 'BEGIN { srand(1); for (v = 0; v < 300; v++) for (k = 0; k < 5; k++)
        print v "," (rand() < 0.8 ? int(rand() * 100) * 3 + v % 3 : int(rand() * 300)) }' | gzip >"$1/raw/edge.csv.gz"
    awk 'BEGIN { srand(2); for (v = 0; v < 300; v++) { for (f = 0; f < 8; f++) printf "%s%.3f", f ? "," : "", (f % 3 == v % 3) + rand()
        print "" } }' | gzip >"$1/raw/node-feat.csv.gz"
    awk 'BEGIN { for (v = 0; v < 300; v++) print v % 3 }' | gzip >"$1/raw/node-label.csv.gz"
    echo 300 | gzip >"$1/raw/num-node-list.csv.gz"
    echo 1500 | gzip >"$1/raw/num-edge-list.csv.gz"
    awk 'BEGIN { for (v = 0; v < 200; v++) print v }' | gzip >"$1/split/time/train.csv.gz"
    awk 'BEGIN { for (v = 200; v < 250; v++) print v }' | gzip >"$1/split/time/valid.csv.gz"
    awk 'BEGIN { for (v = 250; v < 300; v++) print v }' | gzip >"$1/split/time/test.csv.gz"
}

data() {
    mkdir "$T/data"
    exits 0 generate community "$T/data/graph20k" --vertices $vertices --classes 8 --degree 20 --features 64 --seed 1
    ogb_folder "$T/data/arxiv"
    exits 0 info "$T/data/arxiv"
}

# ---- A page ----

# The numbers of lines as N, and blanks as one.
plain() {
    sed 's/[0-9][0-9,.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}/N/g; s/[[:space:]][[:space:]]*/ /g; s/^ //; s/ $//'
}

absent() { # NAME ...: those that are not here
    for name; do
        command -v "$name" >/dev/null 2>&1 || { [ -n "$python" ] && "$python" -c "import $name" >/dev/null 2>&1; } ||
            printf '%s ' "$name"
    done
}

# Why a block is not run, or nothing.
reason() { # BLOCK
    said=$(head -n 1 "$1")
    case $said in
    "not run: "*) echo "${said#not run: }" ;;
    "check-docs: "*) [ "$all" = all ] || echo "make check-docs: ${said#check-docs: }" ;;
    "needs: "*)
        # shellcheck disable=SC2086
        without=$(absent ${said#needs: })
        [ -z "$without" ] || echo "without ${without% }"
        ;;
    esac
    ! grep -q '^\$ mpirun' "$1" || [ -n "$MPIRUN" ] || echo "no MPI"
}

# Whether the block prints numbers, which are compared.
is_whole() { # BLOCK
    tail -n +3 "$1" | awk '/^\$ / || more { more = /\\$/; next } /[0-9]/ { found = 1 } END { exit !found }' || return 1
    case $(head -n 1 "$1") in "shortened: "*) [ "$all" = all ] ;; esac
}

# Whether a line of the output has the words of LINE, one after the other. Numbers with a point may differ by one of the last
# digit shown, and have more digits in the output.
has_numbers() { # LINE OUTPUT
    awk -v line="$1" '
        function number(text) { sub(/[,;:)]+$/, "", text); sub(/^[(]/, "", text); return text }
        function alike(a, b, x, y, least) {
            if (a == b)
                return 1
            x = number(a); y = number(b)
            if (x !~ /^-?[0-9]+[.][0-9]+$/ || y !~ /^-?[0-9]+([.][0-9]+)?$/)
                return 0
            least = 1.5 * 10 ^ -(length(x) - index(x, "."))
            return x - y <= least && y - x <= least
        }
        BEGIN { words = split(line, wanted) }
        {
            for (first = 0; first + words <= NF && !found; first++) {
                for (w = 1; w <= words && alike(wanted[w], $(first + w)); w++)
                    ;
                found = w > words
            }
        }
        END { exit !found }' "$2"
}

# One command, and the lines that its output must have.
command_ends() { # WHERE COMMAND EXPECTED
    timeout $seconds sh -c "$2" >"$T/output" 2>&1 </dev/null
    status=$?
    [ $status -eq 0 ] || die "$1: exit status $status: $2
$(tail -n 20 "$T/output")"
    plain <"$T/output" >"$T/plain"
    plain <"$3" | while read -r line; do
        [ -z "$line" ] || [ "$line" = ... ] || grep -qF -- "$line" "$T/plain" || {
            echo "$1: not in the output of $2: $line"
            cat "$T/output"
            exit 1
        }
    done || exit 1
    [ -z "$SL_DOCS_WHOLE" ] || while read -r told; do
        case $told in *[0-9]*) has_numbers "$told" "$T/output" || die "$1: other numbers than $told
$(cat "$T/output")" ;; esac
    done <"$3"
    : >"$3"
}

block() { # PAGE BLOCK
    where=$1:$(basename "$2" | sed 's/^0*//')
    said=$(head -n 1 "$2") language=$(sed -n 2p "$2")
    case $said in
    "file: "*)
        name=${said#file: }
        mkdir -p "$(dirname "$name")"
        tail -n +3 "$2" >"$name"
        return
        ;;
    esac
    if ! grep -q '^\$ ' "$2"; then
        case $language in '' | sh | bash | console) ;; *) return ;; esac
        ! grep -qE '^(\.?/?[a-z]+/)*(starling|mpirun|make|bootstrap|apt-get|pip|python3|dpkg|spack|guix|sbatch|podman|sh|cc|[a-z-]+\.(sh|py)) ' "$2" ||
            die "$where: commands without \"$ \""
        return
    fi
    echo x >>"$T/blocks"
    why=$(reason "$2" | head -n 1)
    if [ -n "$why" ]; then
        echo "not run  $where: $why" >>"$T/not-run"
        return
    fi
    SL_DOCS_WHOLE=
    ! is_whole "$2" || SL_DOCS_WHOLE=whole
    export SL_DOCS_WHOLE
    command=
    : >"$T/expected"
    tail -n +3 "$2" >"$T/lines"
    echo '$ ' >>"$T/lines" # ends the last command
    more=
    while IFS= read -r line <&3; do
        case $more$line in
        '$ '*)
            [ -z "$command" ] || command_ends "$where" "$command" "$T/expected"
            command=${line#\$ }
            [ -z "$command" ] || echo x >>"$T/commands"
            ;;
        more*)
            command="$command
$line"
            ;;
        *) printf '%s\n' "$line" >>"$T/expected" ;;
        esac
        case $more$line in
        '$ '*\\ | more*\\) more='more' ;;
        *) more= ;;
        esac
    done 3<"$T/lines"
    # Blocks below have the small graph again.
    [ "$SL_DOCS_WHOLE" != whole ] || [ ! -d graph20k ] || { rm -rf graph20k && cp -r "$T/data/graph20k" .; }
}

page() { # FILE
    page=${1#"$source"/}
    name=$(echo "$page" | tr / -)
    mkdir -p "$T/work/$name" "$T/blocks-of/$name"
    awk -v folder="$T/blocks-of/$name" -f "$source/tests/docs.awk" "$1" || exit 1
    [ ! -e "$T/blocks-of/$name/unlike" ] || die "$page: $(cat "$T/blocks-of/$name/unlike")"
    cd "$T/work/$name" || exit 1
    ln -s "$source/examples" "$source/packaging" "$source/contrib" .
    cp -r "$T/data/arxiv" .
    grep -q '^\$ starling generate community graph20k' "$1" || cp -r "$T/data/graph20k" .
    for block in "$T/blocks-of/$name"/*; do
        [ ! -e "$block" ] || block "$page" "$block"
    done
    cd "$T" && rm -rf "$T/work/$name"
}

# What a page that is wrong gets: the test itself.
wrong() { # TEXT PAGE-TEXT
    mkdir -p "$T/wrong"
    printf '%b' "$2" >"$T/wrong/PAGE.md"
    (page "$T/wrong/PAGE.md") >"$T/got" 2>&1 && die "passed: $2"
    rm -rf "$T/work" "$T/blocks-of"
    grep -qF "$1" "$T/got" || die "no \"$1\" in: $(cat "$T/got")"
}

# shellcheck disable=SC2016
wrong_pages() {
    wrong 'exit status 2' '```\n$ starling trian\n```\n'
    wrong 'not in the output of starling version: Sterling N' '```\n$ starling version\nSterling 0.1\n```\n'
    wrong 'other numbers than 12 words and 0.50' '```\n$ echo 12 words and 0.484\n12 words and 0.50\n```\n'
    wrong 'other numbers than 12 words' '```\n$ echo 13 words\n12 words\n```\n'
    wrong 'exit status 1: false' '```\n$ echo 12 words\n12 words\n$ false\n$ true\n```\n'
    wrong 'commands without "$ "' '```\nstarling version\n```\n'
    wrong 'commands without a block' '\n    starling version\n'
    printf '%b' '<!-- not run: no reason -->\n```\n$ false\n```\n<!-- shortened: long -->\n```\n$ echo 3\n4\n```\n```\n$ echo 12 words and 0.494, then 7\nand 0.50, then\n```\n<!-- file: a/f -->\n```\none\n```\n```\n$ cat a/f &&\\\n  echo 2\none\n2\n```\n' >"$T/wrong/PAGE.md"
    (page "$T/wrong/PAGE.md") >"$T/got" 2>&1 || die "$(cat "$T/got")"
    [ "$(cat "$T/not-run")" = "not run  $T/wrong/PAGE.md:2: no reason" ] || die "$(cat "$T/not-run")"
}

command -v gzip >/dev/null || { echo "no gzip"; exit 77; }
: >"$T/not-run"
: >"$T/blocks"
: >"$T/commands"
programs
check "datasets" data
check "pages that are wrong" wrong_pages
: >"$T/not-run"
: >"$T/blocks"
: >"$T/commands"
[ $# -gt 0 ] || {
    cd "$source" || exit 1
    set -- README.md docs/*.md
}
for file; do
    start=$(date +%s)
    check "$file" page "$source/$file"
    [ -z "$SL_DOCS_SECONDS" ] || echo "      $(($(date +%s) - start)) s"
done
cat "$T/not-run"
echo "$(wc -l <"$T/blocks") blocks of commands, $(wc -l <"$T/not-run") of them not run; $(wc -l <"$T/commands") commands run"
finish
