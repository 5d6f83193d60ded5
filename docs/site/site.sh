#!/bin/sh
# Makes the pages of the source tree a site of HTML, by pandoc: site.sh SOURCE FOLDER [MAN-PAGE ...]. The site has docs/*.md,
# docs/measurements/*.md
# (as measurements-NAME.html), README.md, HACKING.md, SECURITY.md, NEWS, examples and the man pages, and a link to reference/
# where that is there. CONTENTS.html is also index.html.
set -eu
source=$1 folder=$2
shift 2
mkdir -p "$folder"

nav() {
    echo '<nav class="site"><a href="index.html">Contents</a> <a href="README.html">Starling</a> <a href="man.html">Man pages</a>'
    [ ! -e "$folder/reference/index.html" ] || echo '<a href="reference/starling_8h.html">C reference</a>'
    echo '</nav>'
}

# page FILE FORMAT NAME TITLE [OPTION ...]
page() {
    file=$1 format=$2 name=$3 title=$4
    shift 4
    pandoc --standalone --from "$format" --to html5 --css style.css --include-before-body "$folder/nav" \
        --lua-filter "$source/docs/site/links.lua" --metadata lang=en --metadata pagetitle="$title" "$@" \
        --output "$folder/$name.html" "$file"
}

nav >"$folder/nav"
cp "$source/docs/site/style.css" "$source"/docs/*.svg "$source"/docs/*.png "$source/NEWS" "$folder"
mkdir -p "$folder/examples"
cp "$source"/examples/*.c "$source"/examples/*.ipynb "$folder/examples"
for file in "$source/README.md" "$source/HACKING.md" "$source/SECURITY.md" "$source"/docs/*.md; do
    page "$file" gfm "$(basename "$file" .md)" "$(sed -n 's/^# //p' "$file" | head -n 1)" --toc --toc-depth 2
done
for file in "$source"/docs/measurements/*.md; do
    page "$file" gfm "measurements-$(basename "$file" .md)" "$(sed -n 's/^# //p' "$file" | head -n 1)"
done
cp "$folder/CONTENTS.html" "$folder/index.html"

{
    echo '# Man pages'
    echo
    for file; do echo "* [$(basename "$file" .1)]($(basename "$file").html)"; done
} >"$folder/man.md"
page "$folder/man.md" gfm man "Man pages"
for file; do
    page "$file" man "$(basename "$file")" "$(basename "$file" .1)"
done
rm "$folder/nav" "$folder/man.md"
