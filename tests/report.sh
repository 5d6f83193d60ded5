#!/bin/sh
# Pages of starling report and --report: tests/report.py reads them; a browser draws them, where there is one. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
command -v gnuplot >/dev/null 2>&1 || { echo "no gnuplot to draw the figures"; exit 77; }
command -v python3 >/dev/null 2>&1 || { echo "no python3 to read the pages"; exit 77; }
reader=${top_srcdir:-${srcdir:-.}}/tests/report.py
case $reader in /*) ;; *) reader=$PWD/$reader ;; esac

runs() {
    "$STARLING" generate community "$T/graph" --vertices 900 --classes 4 --degree 8 --features 6 >"$T/out" || exit 1
    train two 2 train "$T/graph" --tiles 6 --epochs 12 --eval-every 3 --profile --trace trace.json --distribution halo
    train one 1 train "$T/graph" --epochs 8 --model sage --hidden 8
}

page() {
    cd "$T/two" || exit 1
    "$STARLING" report log --output page.html >"$T/out" 2>&1 || die "$(cat "$T/out")"
    grep -qx 'page.html: 1 run' "$T/out" || die "$(cat "$T/out")"
    python3 "$reader" page.html "Loss,Accuracy,Seconds of an epoch,Time of an epoch,Operations,An epoch over time,Memory,Traffic" \
        log || die "the page is not what the log says"
}

# Without a profile, a trace and messages there are fewer figures.
pages() {
    cd "$T" || exit 1
    "$STARLING" report two/log one/log --output both.html --quiet || die "no page"
    python3 "$reader" both.html "Loss,Accuracy,Seconds of an epoch,Time of an epoch,Operations,Memory,Traffic,Time of an epoch,Memory" \
        two/log one/log || die "the page is not what the logs say"
}

of_a_run() {
    cd "$T" || exit 1
    "$STARLING" train graph --epochs 5 --report r.html --quiet || die "no run"
    python3 "$reader" r.html "Loss,Accuracy,Seconds of an epoch,Time of an epoch,Memory" r.html.jsonl || die "another page"
    "$STARLING" train graph --epochs 5 --report s.html --log s.jsonl --quiet || die "no run"
    [ -s s.html ] && [ ! -e s.html.jsonl ] || die "another log"
    run 2 train graph --epochs 5 --report p.html --quiet || die "$(cat err)"
    [ -s p.html ] || die "no page on two ranks"
}

# A killed program may cut the last line. A run that goes on appends its events; epochs that are done again count once.
unfinished() {
    cd "$T" || exit 1
    head -c $(($(wc -c <two/log) - 200)) two/log >cut
    "$STARLING" report cut --output cut.html --quiet || die "no page"
    grep -q 'has no event <code>end</code>' cut.html || die "no word of the end"
    cat two/log one/log >joined
    "$STARLING" report joined --output joined.html --quiet || die "no page"
    python3 "$reader" joined.html "Loss,Accuracy,Seconds of an epoch,Time of an epoch,Memory" joined || die "not the last run"
    cat one/log cut >more
    "$STARLING" report more --output more.html --quiet || die "no page"
    grep -q 'has no event <code>end</code>' more.html || die "the end of another run"
}

refuses() {
    cd "$T" || exit 1
    refused "nowhere: No such file" report nowhere
    printf '{"event":"start"}\n{"event":\n{"event":"end"}\n' >bad
    refused "bad, line 2: expected an event of starling train --log" report bad
    : >empty
    refused 'empty: no event "start"' report empty
    refused "--trace one/log: " report two/log --trace one/log
    refused "/nowhere/x.html: " report two/log --output "$T/nowhere/x.html"
    refused "--log x is the file of --report" train graph --log x --report x
    refused "--output two/log is a file that is read" report two/log --output two/log
    "$STARLING" train graph --plan --report plan.html >"$T/out" || die "no plan"
    mkdir -p bin
    refused_without_gnuplot train graph --report y.html
    refused_without_gnuplot report two/log --output z.html
    [ ! -e y.html ] && [ ! -e z.html ] || die "half a page"
}

# Names in a log are text, for the page and for gnuplot, whatever they are.
escapes() {
    cd "$T" || exit 1
    sed 's/"name":"cora*graph"/&/; s/"name":"[a-z]*"/"name":"<script>alert(1)<\/script>"/
        s/"name":"gemm_set"/"name":"a\\"\\nEOD\\nsystem(\\"touch hacked\\")\\n`touch hacked`"/' two/log >'<b>&'"'"'.jsonl'
    grep -q 'touch hacked' ./*.jsonl || die "no hostile name"
    "$STARLING" report '<b>&'"'"'.jsonl' two/log --output escaped.html --quiet || die "no page"
    sed '/"thread_name"/s/"args":{"name":"[^"]*"/"args":{"name":"`touch hacked`'"'"'"/' two/trace.json >hostile.json
    grep -q 'touch hacked' hostile.json || die "no hostile track"
    "$STARLING" report two/log --trace hostile.json --output hostile.html --quiet || die "no page"
    grep -q 'touch hacked' hostile.html || die "no track of that name"
    ! grep -q '<script\|<b>' escaped.html || die "markup of the log is in the page"
    grep -q '&lt;b&gt;&amp;' escaped.html || die "no name"
    [ ! -e hacked ] || die "a name was run"
}

refused_without_gnuplot() {
    PATH=$T/bin "$STARLING" "$@" >"$T/out" 2>"$T/err" && die "$*: went on without gnuplot"
    grep -q 'gnuplot is not there' "$T/err" || die "$*: $(cat "$T/err")"
}

# look FILE WIDTH SCHEME: 0 is dark, 1 is light; the browser's console in $T/out. No window is narrower than 500 pixels: a frame is.
look() {
    printf '<iframe style="border:0;width:%spx;height:900px" src="file://%s"></iframe>\n' "$2" "$1" >"$T/frame.html"
    HOME=$T timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --window-size=1500,1000 --blink-settings=preferredColorScheme="$3" \
        --enable-logging=stderr --screenshot="$T/shot.png" "file://$T/frame.html" >"$T/out" 2>&1 || die "$(tail -3 "$T/out")"
    [ -s "$T/shot.png" ] || die "no picture"
}

# No error on the console; then again with a script that measures.
drawn() {
    browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "no browser"; exit 77; }
    for page in two/page both; do
        { cat "$T/$page.html" && echo '<script>' && cat "${reader%.py}.js" && echo '</script>'; } >"$T/measured.html"
        for width in 400 1400; do
            for scheme in 0:dark 1:light; do
                look "$T/$page.html" $width "${scheme%:*}"
                ! grep 'CONSOLE' "$T/out" || die "an error on the console"
                look "$T/measured.html" $width "${scheme%:*}"
                grep -q "CHECKED at $width, ${scheme#*:}: good" "$T/out" || die "$page at $width: $(grep CONSOLE "$T/out")"
            done
        done
    done
}

# Classes have the names that the dataset has, as text.
named() {
    cd "$T" || exit 1
    cp -r graph named
    python3 - <<'PYTHON'
import json
meta = json.load(open("named/meta.json"))
meta["class_names"] = ["Theory", "<b>AI</b>", "Systems & \"Networks\"", "0"]
json.dump(meta, open("named/meta.json", "w"))
PYTHON
    "$STARLING" train named --epochs 5 --report n.html --quiet || die "no run"
    python3 "$reader" n.html "Loss,Accuracy,Seconds of an epoch,Time of an epoch,Memory" n.html.jsonl || die "another page"
    for name in '0 Theory' '1 &lt;b&gt;AI&lt;/b&gt;' '2 Systems &amp; &quot;Networks&quot;' '3 0'; do
        [ "$(grep -o "<th scope=\"row\">$name</th>" n.html | wc -l)" -eq 2 ] || die "no class $name"
    done
}

check "runs" runs
check "one run" page
check "two runs" pages
check "--report" of_a_run
check "unfinished runs" unfinished
check "what is refused" refuses
check "markup in names" escapes
check "names of classes" named
check "in a browser" drawn
finish
