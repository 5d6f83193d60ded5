# The header with its comments as Doxygen reads them. A comment stands before a declaration, or after one on the same line; it
# is for all declarations up to the next empty line, and for all names of the line.
function close_group() {
    if (open) print "/**@}*/"
    open = 0
}
NR == 1 { sub(/\/\*/, "/** @file\n *"); print; next }
/^\/\* ----/ { print; next }
/^\/\*/ { sub(/\/\*/, "/**"); group = 1 }
/^STARLING_API/ && group { print "/**@{*/"; open = 1; group = 0 }
/^$/ || /^(typedef|enum|struct|#)/ { close_group(); group = 0 }
/^ +\/\*/ { sub(/\/\*/, "/**") }
/[;,] +\/\*/ { sub(/\/\*/, "/**<") }
/^    [a-z0-9_]+ [a-z_]+,.*; *\/\*\*</ {
    type = $1
    names = comment = $0
    sub(/;.*/, "", names)
    sub(/[^;]*; */, "", comment)
    sub(/^ *[a-z0-9_]+ /, "", names)
    count = split(names, name, /, */)
    for (k = 1; k <= count; k++) print "    " type " " name[k] "; " comment
    next
}
{ print }
