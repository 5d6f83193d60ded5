# Counts what `make check` did: awk -f summary.awk tests/*.trs. A test counts its cases: those of cmocka, or the lines
# "ok    …", "FAIL  …" and "skip  …" of a shell test (tests/shell.sh). A test without any counts as one.
# Prints "N passed, N failed, N skipped". Before that it says on standard error what failed, and up to 12 lines of each case's
# words: the end of a long log is what is read of it.
BEGIN { MOST = 12 }
FNR == 1 { finish(); trs = FILENAME; result = "" }
/^:global-test-result:/ { result = $2 }
END {
    finish()
    close("cat >&2")
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
}

# Adds one .trs file, by the cases in its .log where that has them.
function finish(    log_file, line, ok, bad, left, i) {
    if (trs == "")
        return
    log_file = trs
    sub(/\.trs$/, ".log", log_file)
    told = words = lines = of_units = 0
    while ((getline line < log_file) > 0) {
        if (result != "PASS" && result != "SKIP")
            tell(log_file, line)
        last[lines++ % MOST] = line
        if (line ~ /^\[  PASSED  \] [0-9]+ test/)
            ok += number(line)
        else if (line ~ /^\[  FAILED  \].* [0-9]+ test\(s\), listed below/)
            bad += number(line)
        else if (line ~ /^\[  SKIPPED \].* [0-9]+ test\(s\), listed below/)
            left += number(line)
        else if (line ~ /^ok    /)
            ok++
        else if (line ~ /^FAIL  /)
            bad++
        else if (line ~ /^skip  /)
            left++
    }
    close(log_file)
    if (ok + bad + left == 0) {
        ok = result == "PASS"
        left = result == "SKIP"
    }
    if (result != "PASS" && result != "SKIP" && bad == 0)
        bad = 1
    if (bad > 0 && !told)
        for (i = lines > MOST ? lines - MOST : 0; i < lines; i++)
            say(log_file, last[i % MOST])
    if (bad > 0 && !told && !lines)
        say(log_file, "failed without a word")
    passed += ok
    failed += bad
    skipped += left
    trs = ""
}

# Says a line of a log if it is of a case that failed.
function tell(log_file, line) {
    if (line ~ /^FAIL  /) {
        words = MOST
        told = 1
        say(log_file, line)
    } else if (line ~ /^          / && words > 0) {
        words--
        say(log_file, line)
    } else if (line ~ /^\[  ERROR   \]|^\[   LINE   \]|^ERROR:|^\[  FAILED  \]/) {
        words = 0
        told = 1
        if (of_units++ < MOST)
            say(log_file, line)
    } else if (line !~ /^          /)
        words = 0
}

function say(log_file, line) {
    sub(/.*\//, "", log_file)
    print log_file ": " line | "cat >&2"
}

function number(line) {
    match(line, /[0-9]+ test/)
    return substr(line, RSTART) + 0
}
