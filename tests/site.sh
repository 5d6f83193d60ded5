#!/bin/sh
# The site that docs/site/site.sh makes of the pages: every link leads to a page, and to a heading of it. Doxygen has no warning
# for include/starling.h. Each is skipped without its program.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
source=$(cd "${karate%/examples/karate}" && pwd)

# Links of a site that lead nowhere.
broken() { # FOLDER
    (cd "$1" && for page in *.html; do
        # The header of a page may be one long line.
        tr '\n' ' ' <"$page" | grep -o '\(href\|src\)="[^"]*"' | sed 's/^[a-z]*="//; s/"$//' | sort -u | while read -r link; do
            case $link in *:*) continue ;; esac
            file=${link%%#*} anchor=
            case $link in *#*) anchor=${link#*#} ;; esac
            [ -n "$file" ] || file=$page
            if [ ! -e "$file" ]; then
                echo "$page: no $file"
            elif [ -n "$anchor" ] && ! grep -qF "id=\"$anchor\"" "$file"; then
                echo "$page: no #$anchor in $file"
            fi
        done
    done)
}

site() {
    command -v pandoc >/dev/null || skip "no pandoc"
    "$STARLING" man >"$T/starling.1" || die "no man page"
    "$STARLING" man train >"$T/starling-train.1" || die "no man page of train"
    sh "$source/docs/site/site.sh" "$source" "$T/site" "$T/starling.1" "$T/starling-train.1" >"$T/words" 2>&1 || die "$(cat "$T/words")"
    [ ! -s "$T/words" ] || die "$(cat "$T/words")"
    for page in "$source"/README.md "$source"/docs/*.md; do
        [ -s "$T/site/$(basename "$page" .md).html" ] || die "no $page"
    done
    grep -q 'href="FIRST_HOUR.html"' "$T/site/index.html" || die "no contents"
    grep -q -- '--hidden' "$T/site/starling-train.1.html" || die "no options in the man page"
    broken "$T/site" >"$T/broken"
    [ ! -s "$T/broken" ] || die "$(cat "$T/broken")"
    # A page that has a wrong link is seen.
    echo '<a href="README.html#nothing"><a href="NONE.html">' >"$T/site/wrong.html"
    [ "$(broken "$T/site" | wc -l)" -eq 2 ] || die "wrong links: $(broken "$T/site")"
}

# What is in the contents, which has every page.
contents() {
    for page in "$source"/docs/*.md; do
        name=$(basename "$page")
        [ "$name" = CONTENTS.md ] || grep -q "]($name)" "$source/docs/CONTENTS.md" || die "docs/CONTENTS.md has no $name"
    done
}

# doxygen HEADER: its words; the reference is in $T/reference.
reference_of() {
    mkdir -p "$T/tree/include" "$T/tree/docs"
    ln -sf "$source/docs/site" "$T/tree/docs"
    cp "$1" "$T/tree/include/starling.h"
    cp "$source/include/starling-predict.h" "$T/tree/include"
    sed "s,@version@,0,; s,@source@,$T/tree,; s,@output@,$T," "$source/docs/site/Doxyfile.in" >"$T/Doxyfile"
    doxygen "$T/Doxyfile" >"$T/words" 2>&1
}

reference() {
    command -v doxygen >/dev/null || skip "no doxygen"
    reference_of "$source/include/starling.h" || die "$(cat "$T/words")"
    [ ! -s "$T/words" ] || die "$(cat "$T/words")"
    grep -q starling_graph_set_mask "$T/reference/starling_8h.html" && grep -q starling_predictor_run "$T/reference/starling-predict_8h.html" ||
        die "no functions"
    sed 's/^.* ---- Options ---- .*/STARLING_API void starling_unknown(void);/' "$source/include/starling.h" >"$T/wrong.h"
    reference_of "$T/wrong.h" && die "a function without words has no warning"
    grep -q 'starling_unknown' "$T/words" || die "$(cat "$T/words")"
}

check "docs/CONTENTS.md has every page" contents
check "the site, and its links" site
check "the reference of the C library" reference
finish
