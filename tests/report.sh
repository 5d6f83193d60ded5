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

# sweep SCORE: the table of many runs has the options that differ, the best run first; no figure has more than eight keys, and
# those of runs are the best ones. Loss and scores are of one epoch, also in logs of programs that told the last loss.
sweep() {
    cd "$T" || exit 1
    score=$1
    mkdir -p sweep
    python3 - "$score" <<'PYTHON' || die "no logs"
import json, sys
score = sys.argv[1]
events = [json.loads(line) for line in open("one/log")]
for k in range(12):
    with open(f"sweep/{k}", "w") as log:
        for e in json.loads(json.dumps(events)):
            if e["event"] == "start":
                e["configuration"].update({"lr": 0.01 * (1 + k % 3), "hidden": 8 << k % 4, "patience": 5, "log": f"sweep/{k}", "plan": k % 2 > 0})
                if k == 11: # of an older program
                    e["configuration"].pop("keep")
            if e["event"] == "epoch":
                e["loss"] = k + e["epoch"] / 100
            if e["event"] == "end":
                e["metric"], e["best_epoch"], e["kept_epoch"], e["loss"] = score, 4, 4, k + 0.04
                e["val_" + score.replace("-", "_")], e["test_" + score.replace("-", "_")] = abs(k - 6.5) / 10, k / 100
                if k == 11:
                    del e["kept_epoch"]
                    e["loss"] = k + 0.08
                if k == 3: # worse than any other
                    e["val_" + score.replace("-", "_")] = None
            print(json.dumps(e), file=log)
PYTHON
    "$STARLING" report sweep/* --output sweep.html --quiet || die "no page"
    python3 - "$score" <<'PYTHON' || die "another table"
import re, sys
text = lambda part: [re.sub("<[^>]*>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", part)]
page = open("sweep.html").read()
head, *rows = map(text, re.findall("<tr.*?</tr>", re.search('<table id="sweep".*?</table>', page, re.S)[0], re.S))
score = sys.argv[1]
assert head[0] == "run" and head[1:3] == ["hidden", "lr"] and head[3:7] == \
    ["weights of epoch", "loss", f"validation {score}", f"test {score}"] and len(head) == 8, head
size = lambda k: (k == 3, (1 if score == "loss" else -1) * abs(k - 6.5), [str(n) for n in sorted(map(str, range(12)))].index(str(k)))
order = sorted(range(12), key=size)
best = [k for k in order if size(k)[:2] == size(order[0])[:2]]
assert [row[0] for row in rows] == [f"sweep/{k}" + " (best)" * (k in best) for k in order], [row[0] for row in rows]
for k, row in zip(order, rows):
    assert [float(x) for x in row[1:5]] == [8 << k % 4, float(f"{0.01 * (1 + k % 3):.6g}"), 4, k + 0.04], (k, row)
    assert row[5] == ("–" if k == 3 else f"{abs(k - 6.5) / 10:.6g}") and float(row[6]) == k / 100, (k, row)
assert page.count('<tr class="best">') == len(best)
keys = [re.findall("</span>(.*?)</li>", part) for part in re.findall('<ul class="keys">.*?</ul>', page, re.S)][:3]
assert keys[0] == keys[2] == [f"sweep/{k}" for k in order[:7]] + ["5 other runs"], keys
assert keys[1] == [f"sweep/{k}" for k in order[:4]] + ["8 other runs", "validation", "test", "training"], keys[1]
PYTHON
    "$STARLING" report one/log two/log --output unlike.html --quiet || die "no page"
    sed 's/"name": *"[a-z]*", *"vertices"/"name":"other","vertices"/' two/log >elsewhere
    ! cmp -s two/log elsewhere || die "no name in the log"
    "$STARLING" report one/log elsewhere --output unlike.html --quiet || die "no page"
    ! grep -q 'class="best"' unlike.html || die "the best run on two datasets"
    grep -q 'have no best one' unlike.html || die "no word of it"
}

# Runs that differ in seeds alone have a row with mean and deviation; a run without a score, and one without a like, have none.
seeds() {
    cd "$T" || exit 1
    mkdir -p seeds
    python3 - <<'PYTHON' || die "no logs"
import json
events = [json.loads(line) for line in open("one/log")]
for k in [0, 1, 2, 3, 4, 5, 6, 7, 71]: # of run 7 there are two logs
    with open(f"seeds/{k}", "w") as log:
        for e in json.loads(json.dumps(events)):
            if e["event"] == "start":
                e["configuration"].update({"hidden": 8 if k < 4 else 16 if k < 7 else 32, "seed": min(k, 7) % 4, "split-seed": min(k, 7) % 2})
                if k == 5: # of an older program
                    del e["configuration"]["clip-norm"], e["graph"]["hashes"]
            if e["event"] == "end":
                e["val_accuracy"], e["test_accuracy"] = 0.5 + k * k / 100, None if k == 3 else 0.25 + k / 64
            print(json.dumps(e), file=log)
PYTHON
    "$STARLING" report seeds/* --output seeds.html --quiet || die "no page"
    python3 - <<'PYTHON' || die "another table"
import re, statistics
page = open("seeds.html").read()
head, *rows = ([re.sub("<[^>]*>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", part)]
               for part in re.findall("<tr.*?</tr>", re.search('<table id="seeds".*?</table>', page, re.S)[0], re.S))
assert head == ["runs", "hidden", "validation accuracy", "test accuracy"], head
told = lambda values: f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"
row = lambda hidden, runs: [str(len(runs)), str(hidden), told([0.5 + k * k / 100 for k in runs]), told([0.25 + k / 64 for k in runs])]
assert rows == [row(8, [0, 1, 2]), row(16, [4, 5, 6])], rows
PYTHON
    "$STARLING" report one/log two/log --output no-seeds.html --quiet || die "no page"
    ! grep -q 'id="seeds"' no-seeds.html || die "means of unlike runs"
}

# compared BEST MEMBER VALUE [MEMBER VALUE]...: a run and a copy of its log with these members of `start`, of which a best run
# is told or not. The table has what differs, also options that one run leaves unset; an option that an older log lacks is none.
compared() {
    cd "$T" || exit 1
    best=$1
    shift
    python3 - "$@" <<'PYTHON' || die "no log"
import json, sys
with open("copy", "w") as log:
    for e in map(json.loads, open("one/log")):
        for name, value in zip(sys.argv[1::2], sys.argv[2::2]) if e["event"] == "start" else ():
            group, name = name.split(".")
            e[group][name] = json.loads(value)
            if value == '"absent"':
                del e[group][name]
        print(json.dumps(e), file=log)
PYTHON
    "$STARLING" report one/log copy --output copies.html --quiet || die "no page"
    python3 - "$@" <<'PYTHON' || die "another table"
import json, re, sys
table = re.search('<table id="sweep".*?</table>', open("copies.html").read(), re.S)[0]
rows = [[re.sub("<[^>]*>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", row)] for row in re.findall("<tr.*?</tr>", table, re.S)]
told = {name.split(".")[1]: json.loads(value) for name, value in zip(sys.argv[1::2], sys.argv[2::2])
        if name.startswith("configuration") and value != '"absent"'}
assert rows[0][1:-5] == sorted(told), rows
cells = dict(zip(rows[0], next(row for row in rows if row[0].startswith("copy"))))
assert all(cells[name] == str(value) for name, value in told.items()), rows
PYTHON
    [ "$(grep -c '<tr class="best">' copies.html)" -eq "$best" ] || die "not $best best runs"
}

# Runs whose times, and numbers of epochs and ranks, give axes all lengths; "in a browser" looks whether there is room.
lengths() {
    cd "$T" || exit 1
    python3 - <<'PYTHON' || die "no logs"
import json
def scaled(value, by):
    return [scaled(v, by) for v in value] if isinstance(value, list) else value * by
def slower(value, by):
    if isinstance(value, list):
        return [slower(v, by) for v in value]
    if not isinstance(value, dict):
        return value
    return {k: scaled(v, by) if k.endswith("seconds") else slower(v, by) for k, v in value.items()}
runs = ("a", 1e-5, 1, 3), ("b", 0.03, 1000, 16), ("c", 0.7, 9999, 32), ("d", 47, 123, 2), ("e", 1900, 1, 2)
for name, times, epoch, ranks in runs:
    with open(name, "w") as log:
        for event in map(json.loads, open("two/log")):
            event = slower(event, times)
            if event["event"] == "start":
                event["configuration"]["trace"] = None
            if event["event"] == "epoch":
                event["epoch"] *= epoch
            if event["event"] == "end":
                event["time_per_epoch"]["waiting_seconds"] = [1.9 * times] # longer than any other
                event["profile"]["operations"][0]["seconds"] = 1.9 * times * event["profile"]["epochs"]
                received = event["traffic_per_epoch"]["bytes_received"]
                event["traffic_per_epoch"]["bytes_received"] = (received * ranks)[:ranks]
            print(json.dumps(event), file=log)
PYTHON
    for log in a b c d e; do
        "$STARLING" report $log --output $log.html --quiet || die "no page"
        python3 "$reader" $log.html "Loss,Accuracy,Seconds of an epoch,Time of an epoch,Operations,Memory,Traffic" $log ||
            die "the page is not what the log says"
    done
    tail -n 1 a >end
    { head -n 1 a && printf '{"event":"epoch","epoch":1000000,"loss":1,"seconds":1}\n' && cat end; } >once
    "$STARLING" report a b c d e once --output lengths.html --quiet || die "no page"
    "$STARLING" report once --output once.html --quiet || die "no page"
    [ "$(grep -o '<text' once.html | wc -l)" -lt 200 ] || die "too many numbers at the axes"
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
    sed '$s/"loss": *[^,]*/"loss":null/' one/log >between # weights of no epoch
    "$STARLING" report between one/log --output between.html --quiet || die "no page"
    grep -q '<th scope="row">between (best)</th><td>8</td><td>–</td>' between.html || die "the loss of an epoch: $(grep between between.html)"
}

refuses() {
    cd "$T" || exit 1
    refused "nowhere: cannot open: No such file" report nowhere
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
    HOME=$T timeout 1200 "$browser" --headless=new --no-sandbox --disable-gpu --window-size=1500,1000 --blink-settings=preferredColorScheme="$3" \
        --enable-logging=stderr --screenshot="$T/shot.png" "file://$T/frame.html" >"$T/out" 2>&1 || die "$(tail -3 "$T/out")"
    [ -s "$T/shot.png" ] || die "no picture"
}

measured() { # PAGE WIDTH SCHEME
    { cat "$T/$1.html" && echo '<script>' && cat "${reader%.py}.js" && echo '</script>'; } >"$T/measured.html"
    look "$T/measured.html" "$2" "${3%:*}"
    grep -q "CHECKED at $2, ${3#*:}: good" "$T/out" || die "$1 at $2: $(grep CONSOLE "$T/out")"
}

# No error on the console; then again with a script that measures.
drawn() {
    browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "no browser"; exit 77; }
    for page in two/page both; do
        for width in 400 1400; do
            for scheme in 0:dark 1:light; do
                look "$T/$page.html" $width "${scheme%:*}"
                ! grep 'CONSOLE' "$T/out" || die "an error on the console"
                measured $page $width $scheme
            done
        done
    done
    for page in lengths once c; do
        measured $page 400 1:light
        measured $page 1400 1:light
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
check "twelve runs" sweep accuracy
check "... by a falling metric" sweep loss
check "... by another metric" sweep macro-f1
check "means over seeds" seeds
check "an option that one run sets" compared 2 configuration.clip-norm 5 configuration.max-hop '"2"'
check "... that an older log lacks" compared 2 configuration.split '"absent"' configuration.keep '"absent"'
check "another split" compared 0 configuration.split '"60/20/20"'
check "... another number of vertices" compared 0 graph.vertices 800
check "... of edges" compared 0 graph.adjacency_entries 800
check "the seed of no split" compared 2 configuration.split-seed 3
check "--report" of_a_run
check "axes of all lengths" lengths
check "unfinished runs" unfinished
check "what is refused" refuses
check "markup in names" escapes
check "names of classes" named
check "in a browser" drawn
finish
