#!/bin/sh
# No circle of object files in the rooms of a run: each file can be read, and tested, with the files below it.
# Prints the files of each circle; exit status 77 in a build without objects for a shared library.
top=${top_srcdir:-$(dirname "$0")/..}
build=${top_builddir:-.}
[ -d "$build/src/recipe/.libs" ] || exit 77
objects=$(
    for room in recipe checkpoint log batches groups submodels train run; do
        for source in "$top/src/$room"/*.c; do
            object=$build/src/$room/.libs/$(basename "$source" .c).o
            [ -f "$object" ] || { echo "no $object" >&2; exit 1; }
            echo "$object"
        done
    done
) || exit 1

# "USER DEFINER" for each symbol that one object takes from another.
# shellcheck disable=SC2086
nm -A -P $objects | awk '
    { sub(/:$/, "", $1) }
    $3 == "U" { users[$2] = users[$2] " " $1 }
    $3 ~ /^[TDBR]$/ { definer[$2] = $1 }
    END {
        for (symbol in definer) {
            count = split(users[symbol], user, " ")
            for (u = 1; u <= count; u++)
                print user[u], definer[symbol]
        }
    }' | tsort 2>&1 >/dev/null | sed 's|tsort: *||; s|/\.libs||' | grep . && exit 1
exit 0
