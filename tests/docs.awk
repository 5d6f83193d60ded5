# The code blocks of a Markdown page as files, for tests/docs.sh: FOLDER/LINE has, in its first line, what a comment before the
# block says ("not run: it needs root"), or "-"; then the block. Wants -v folder=FOLDER.
/^<!-- (not run|check-docs|needs|file|shortened): .* -->$/ && !inside {
    said = $0
    sub(/^<!-- /, "", said)
    sub(/ -->$/, "", said)
    next
}
/^```/ && !inside {
    inside = 1
    file = sprintf("%s/%04d", folder, NR)
    print said == "" ? "-" : said >file
    print substr($0, 4) >file
    said = ""
    next
}
/^```/ {
    inside = 0
    close(file)
    next
}
inside {
    print >file
    next
}
/^    (starling|mpirun|make|\.\/|apt|pip|python3|contrib\/|tests\/|sh |spack|guix|sbatch|for )/ {
    printf "%d: commands without a block of their own: %s\n", NR, $0 >(folder "/unlike")
}
NF { said = "" }
