#!/bin/sh
# The closing line of the suite (tests/summary.awk), and the lines of shell tests that it counts (tests/shell.sh).
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
awk=$(cd "${top_srcdir:-${srcdir:-.}}" && pwd)/tests/summary.awk
tests=$(dirname "$awk")

# A test that automake has run: its result, and on stdin what it printed.
ran() { # NAME RESULT
    mkdir -p "$T/trs"
    cat >"$T/trs/$1.log"
    printf ':test-result: %s\n:global-test-result: %s\n:recheck: no\n' "$2" "$2" >"$T/trs/$1.trs"
}

# counts TEXT: the closing line of the tests that have run, which are then forgotten.
counts() {
    got=$(awk -f "$awk" "$T"/trs/*.trs 2>"$T/told")
    rm -r "$T/trs"
    [ "$got" = "$1" ] || die "$got instead of $1"
}

of_unit_tests() {
    printf '%s\n' '[==========] 9 test(s) run.' '[  PASSED  ] 4 test(s).' \
        '[  SKIPPED ] tests: 3 test(s), listed below:' '[  FAILED  ] tests: 2 test(s), listed below:' |
        ran unit FAIL
    counts "4 passed, 2 failed, 3 skipped"
}

of_shell_tests() {
    printf '%s\n' 'ok    one' 'skip  two: not there' 'FAIL  three' '          ok    no case' '3 cases' | ran shell FAIL
    counts "1 passed, 1 failed, 1 skipped"
}

of_tests_without_cases() {
    echo "no compiler" | ran without SKIP
    : | ran silent PASS
    echo "ok    one" | ran ended FAIL
    : | ran broken ERROR
    counts "2 passed, 2 failed, 1 skipped"
}

# What failed is said before the closing line, which stays the last one.
tells() {
    {
        printf '%s\n' 'ok    one' '          no word of a case' 'FAIL  two'
        seq 1 14 | sed 's/^/          word /'
        printf '%s\n' 'ok    three' '          none' 'FAIL  four' '4 cases, 2 failed'
    } | ran shell FAIL
    printf '%s\n' '[ RUN      ] test_a' '[  ERROR   ] --- 1 != 2' '[   LINE   ] --- a.c:3: error: Failure!' '[  FAILED  ] test_a' \
        '[ RUN      ] test_b' 'ERROR: 4 bytes' '[  PASSED  ] 1 test(s).' '[  FAILED  ] tests: 2 test(s), listed below:' | ran unit FAIL
    seq 1 20 | ran without FAIL
    : | ran silent ERROR
    printf '%s\n' 'ERROR: no failure' '[  PASSED  ] 1 test(s).' | ran passed PASS
    {
        echo 'shell.log: FAIL  two'
        seq 1 12 | sed 's/^/shell.log:           word /'
        echo 'shell.log: FAIL  four'
        echo 'silent.log: failed without a word'
        printf 'unit.log: %s\n' '[  ERROR   ] --- 1 != 2' '[   LINE   ] --- a.c:3: error: Failure!' '[  FAILED  ] test_a' \
            'ERROR: 4 bytes' '[  FAILED  ] tests: 2 test(s), listed below:'
        seq 9 20 | sed 's/^/without.log: /'
    } >"$T/wanted"
    [ "$(awk -f "$awk" "$T"/trs/*.trs 2>&1 | tail -n 1)" = "4 passed, 6 failed, 0 skipped" ] || die "another last line"
    counts "4 passed, 6 failed, 0 skipped"
    diff "$T/wanted" "$T/told" || die "other words"
    echo "ok    one" | ran shell PASS
    counts "1 passed, 0 failed, 0 skipped"
    [ ! -s "$T/told" ] || die "words where nothing failed: $(cat "$T/told")"
}

# A shell test whose cases are on stdin: its words are in $T/words.
cases() { # STATUS
    {
        echo '. "$tests/shell.sh"'
        cat
        echo finish
    } >"$T/cases.sh"
    tests=$tests sh "$T/cases.sh" >"$T/words"
    got=$?
    [ $got -eq "$1" ] || die "exit status $got instead of $1: $(cat "$T/words")"
}

skipped_cases() {
    cases 0 <<'END'
whole() { skip "no data"; }
part() { echo "skip  cora: not there"; }
check one true
check two whole
check three part
END
    printf '%s\n' 'ok    one' 'skip  two: no data' 'ok    three' 'skip  three: cora: not there' \
        '3 cases, 0 failed, 1 skipped' | diff - "$T/words" || die "other words"
}

nothing_else() {
    echo 'check one skip "no data"' | cases 77
    printf 'check one skip "no data"\ncheck two false\n' | cases 1
}

check "cases of unit tests" of_unit_tests
check "cases of shell tests" of_shell_tests
check "tests without cases, or ended early" of_tests_without_cases
check "what failed is said" tells
check "a case that is skipped, and a part of one" skipped_cases
check "a test of which all is skipped" nothing_else
finish
