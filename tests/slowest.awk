# Prints the tests that took most processor time, from the files that tests/timed.sh leaves.
# Usage: awk -f slowest.awk build/tests/*.seconds
FNR == 2 {
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/[.]seconds$/, "", name)
    all += seconds[name] = in_seconds($1) + in_seconds($2)
}
END {
    for (MOST = 10; MOST > 0; MOST--) {
        slowest = ""
        for (name in seconds)
            if (slowest == "" || seconds[name] > seconds[slowest])
                slowest = name
        if (slowest == "")
            break
        printf "%7.1f s of processor time  %s\n", seconds[slowest], slowest
        delete seconds[slowest]
    }
    printf "%7.1f s of processor time  all tests\n", all
}

function in_seconds(text,    part) { # 1m2.34s
    split(text, part, "m")
    return part[1] * 60 + part[2]
}
