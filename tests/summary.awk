# Counts what `make check` did: awk -f summary.awk tests/*.trs. A test counts its cases: those of cmocka, or the lines
# "ok    …", "FAIL  …" and "skip  …" of a shell test (tests/shell.sh). A test without any counts as one.
# Prints "N passed, N failed, N skipped".
FNR == 1 { finish(); trs = FILENAME; result = "" }
/^:global-test-result:/ { result = $2 }
END {
    finish()
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
}

# Adds one .trs file, by the cases in its .log where that has them.
function finish(    log_file, line, ok, bad, left) {
    if (trs == "")
        return
    log_file = trs
    sub(/\.trs$/, ".log", log_file)
    while ((getline line < log_file) > 0) {
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
    passed += ok
    failed += bad
    skipped += left
    trs = ""
}

function number(line) {
    match(line, /[0-9]+ test/)
    return substr(line, RSTART) + 0
}
