#!/bin/sh
# `starling bench` with tiny sizes: every part runs, and its JSON has the documented names and figures that fit one
# another. Nothing is said about speed. Wants $STARLING, the program, and $top_srcdir (or $srcdir), the source tree.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
XDG_CACHE_HOME=$T/cache
export XDG_CACHE_HOME
gpu=
(unset STARPU_NCUDA && "$STARLING" train "$karate" --device cuda --epochs 1 --quiet >/dev/null 2>&1) && gpu=yes
python=
command -v python3 >/dev/null 2>&1 && python3 -c 'import json' 2>/dev/null && python=python3

# refused TEXT ARGUMENT ...: status 2 and one sentence on stderr, which holds TEXT.
refused() {
    text=$1
    shift
    exits 2 bench "$@"
    [ "$(wc -l <"$T/err")" -eq 1 ] || die "not one line on stderr: $(cat "$T/err")"
    grep -qF -e "$text" "$T/err" || die "no \"$text\" in: $(cat "$T/err")"
}

says() {
    grep -qF -e "$1" "$T/out" || die "no \"$1\" in: $(cat "$T/out")"
}

# verify FILE, a Python program on stdin: `d` is the document, `rows` its rows.
verify() {
    grep -q '"rows"' "$1" || die "no rows in $1"
    [ -n "$python" ] || { echo "skip  no python3 to read the JSON"; return; }
    {
        cat <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
for name in "bench", "date", "versions", "machine", "options", "rows":
    assert name in d, name
assert d["versions"]["starpu"] and d["machine"]["cores"] >= 1
rows = d["rows"]
def positive(x): return isinstance(x, (int, float)) and not isinstance(x, bool) and x > 0
def spread(row, key):
    assert 0 < row[key + "_low"] <= row[key] <= row[key + "_high"], (key, row)
END
        cat
    } >"$T/verify.py"
    $python "$T/verify.py" "$1" || die "$(cat "$1")"
}

# ---- The parts ----

# Without a GPU, or CUDA, one sentence; with one, products that are right.
device() {
    unset STARPU_NCUDA
    SOFTWARE_GPU_MEMORY=4096 # of which the bandwidth takes half
    export SOFTWARE_GPU_MEMORY
    if [ -n "$gpu" ]; then
        exits 0 bench spmm --device cuda --vertices 300 --degree 7 --width 5,16 --repetitions 1 --remember
        says cusparse
        [ "$(grep -c '"times"' "$XDG_CACHE_HOME/starling/spmm.json")" -eq 2 ] || die "not two shapes remembered"
    else
        refused "--device cuda: expected a GPU, and a build --with-cuda" spmm --device cuda --vertices 300
    fi
}

# The same for dense products, in each precision.
device_gemm() {
    unset STARPU_NCUDA
    if [ -z "$gpu" ]; then
        refused "--device cuda: expected a GPU, and a build --with-cuda" gemm --device cuda --shapes 3x4x5
        return
    fi
    exits 0 bench gemm --device cuda --shapes 30x7x50,1x1x1,9x20x300:tn,20x10x40:nt,5x6x90:tt --repetitions 3 --json "$T/json"
    says 'x starling'
    verify "$T/json" <<'END'
assert d["bench"] == "gemm" and d["options"]["device"] == "cuda"
assert [(r["shape"], r["contestant"]) for r in rows] == \
    [(s, c) for s in ("30x7x50", "1x1x1", "9x20x300:tn", "20x10x40:nt", "5x6x90:tt") for c in ("starling", "tf32", "bf16")]
for r in rows:
    for name in "seconds", "flops_per_second", "times_starling":
        spread(r, name)
    assert abs(r["flops_per_second"] * r["seconds"] / (2 * r["m"] * r["n"] * r["k"]) - 1) < 1e-6, r
    assert r["contestant"] != "starling" or r["times_starling"] == 1
END
}

# Nothing is measured where nothing can be remembered.
forgetful() {
    : >"$T/file"
    for words in "machine --megabytes 1 --gemm-size 16 --rows 16 --width 16" "schedulers $karate --workers-list 1 --epochs 3"; do
        # shellcheck disable=SC2086
        (XDG_CACHE_HOME=$T/file && export XDG_CACHE_HOME && exits 1 bench $words --repetitions 1 --remember) || exit 1
        sentence "$T/file/starling/" "$T/err"
        [ ! -s "$T/out" ] || die "measured: $(cat "$T/out")"
        # shellcheck disable=SC2086
        (unset XDG_CACHE_HOME HOME && exits 1 bench $words --repetitions 1 --remember) || exit 1
        sentence "--remember: neither XDG_CACHE_HOME nor HOME says where" "$T/err"
        [ ! -s "$T/out" ] || die "measured: $(cat "$T/out")"
    done
}

machine() {
    exits 0 bench machine --megabytes 4 --gemm-size 32 --rows 64 --width 16,64 --repetitions 2 --json "$T/json" --remember
    says GB/s
    verify "$T/json" <<'END'
assert d["bench"] == "machine" and d["threads"] >= 1 and d["array_bytes"] == 4 << 20
for measure in "read", "copy", "triad", "gemm", "gemm_tall", "features", "draws":
    threads = [r["threads"] for r in rows if r["measure"] == measure]
    assert threads == sorted(set(threads)) and threads[0] == 1 and threads[-1] == d["threads"], threads
for r in rows:
    spread(r, {"gemm": "flops", "gemm_tall": "flops", "features": "flops", "draws": "entries"}.get(
        r["measure"], "bytes") + "_per_second")
gathers = {(r["width"], r["pages"], r["prefetch"], r["from"], r["threads"]) for r in rows if r["measure"] == "gather"}
ways = [(p, f, "memory") for p in ("huge", "small") for f in (True, False)] + \
    [("huge", True, "core"), ("huge", True, "last")]
assert gathers == {(w, *way, t) for w in (16, 64) for way in ways for t in {1, d["threads"]}}, gathers
END
    for key in features draws core_rate last_rate; do
        grep -q "\"$key\"" "$XDG_CACHE_HOME/starling/machine.json" || die "$key is not remembered"
    done
    exits 0 info machine
    says 'triad'
    exits 0 bench machine --megabytes 1 --gemm-size 16 --rows 16 --width 16 --repetitions 1 --quiet
    [ ! -s "$T/out" ] && [ ! -s "$T/err" ] || die "not quiet: $(cat "$T/out" "$T/err")"
}

gemm() {
    for precision in bf16 fp32; do
        exits 0 bench gemm --shapes 30x7x50,9x20x300:tn,20x10x40:nt,5x6x90:tt --megabytes 1 --gemm-size 16 \
            --repetitions 3 --precision $precision --json "$T/json"
        says Gflop/s
        rates_of_gemm
    done
}

rates_of_gemm() {
    verify "$T/json" <<'END'
assert d["bench"] == "gemm"
threads = [r["threads"] for r in d["references"]]
for r in d["references"]:
    spread(r, "flops_per_second")
    spread(r, "bytes_per_second")
assert [(r["shape"], r["threads"]) for r in rows] == \
    [(s, t) for t in threads for s in ("30x7x50", "9x20x300:tn", "20x10x40:nt", "5x6x90:tt")]
for r in rows:
    for name in "seconds", "flops_per_second", "peak_ratio", "roofline_ratio":
        spread(r, name)
    flops = 2 * r["m"] * r["n"] * r["k"]
    assert abs(r["flops_per_second"] * r["seconds"] / flops - 1) < 1e-6, r
    assert r["bound"] in ("memory", "peak") and r["roofline_ratio"] >= r["peak_ratio"] * 0.999
END
}

spmm() {
    exits 0 bench spmm --vertices 300 --degree 7 --width 5,16 --megabytes 1 --repetitions 3 --json "$T/json"
    says starling
    verify "$T/json" <<'END'
assert d["bench"] == "spmm" and d["vertices"] == 300 and d["entries"] == 2100 and d["threads"] >= 1
assert [r["width"] for r in d["bandwidths"]] == [5, 16]
contestants = [r["contestant"] for r in rows if r["width"] == 5]
assert contestants[:5] == ["starling", "finished", "bf16", "plain", "plain-malloc"]
assert contestants == [r["contestant"] for r in rows if r["width"] == 16]
for r in rows:
    for name in "seconds", "flops_per_second", "bytes_per_second", "roofline_no_reuse", "roofline_full_reuse", \
            "times_starling":
        spread(r, name)
    w = r["width"]
    most, least = 2100 * (8 + 4 * w) + 300 * 4 * w, 2100 * 8 + 2 * 300 * 4 * w
    assert abs(r["roofline_full_reuse"] / r["roofline_no_reuse"] * most / least - 1) < 1e-6, r
    assert abs(r["bytes_per_second"] / r["flops_per_second"] * 2 * 2100 * w / most - 1) < 1e-6, r
    assert r["contestant"] != "starling" or r["times_starling"] == 1
END
    exits 0 bench spmm --like arxiv --scale 0.005 --order rabbit --width 16 --megabytes 1 --repetitions 1
    exits 0 bench spmm --dataset "$karate" --width 3 --megabytes 1 --repetitions 1 --json "$T/json"
    verify "$T/json" <<'END'
assert d["vertices"] == 34 and d["entries"] == 156
END
}

kernels() {
    exits 0 bench kernels --vertices 40 --degree 3 --width 19 --instructions base --repetitions 1 --json "$T/json"
    says 'One thread, 40 vertices with 3 neighbours each'
    says 'x plain'
    verify "$T/json" <<'END'
assert d["bench"] == "kernels" and d["threads"] == 1
names = [r["kernel"] for r in rows]
assert len(names) == len(set(names)) and {"gather", "features", "epilogue", "attention_back", "norm_row", "max", "softmax",
    "adam", "own_reduce", "pack", "bf16_narrow"} <= set(names), names
for r in rows:
    assert r["width"] == 19 and r["instructions"] == "base" and r["limit"] in ("triad", "multiply-add"), r
    for name in "seconds", "plain_seconds", "bytes_per_second", "times_plain", "share", "triad_bytes_per_second", \
            "peak_flops_per_second":
        spread(r, name)
    amount = "bytes" if r["limit"] == "triad" else "flops"
    limit = r["triad_bytes_per_second" if amount == "bytes" else "peak_flops_per_second"]
    assert abs(r["share"] * limit * r["seconds"] / r[amount] - 1) < 1e-6, r
    assert abs(r["times_plain"] * r["seconds"] / r["plain_seconds"] - 1) < 1e-6, r
bytes = {r["kernel"]: r["bytes"] for r in rows}
assert bytes["gather"] == 4 * (40 * 19 + 120 + 120 * 19) and bytes["accumulate"] == 12 * 40 * 19, bytes
END
    exits 0 bench kernels --vertices 40 --degree 3 --width 1,32 --kernel attention,accumulate --repetitions 1 --json "$T/json"
    verify "$T/json" <<'END'
levels = {r["instructions"] for r in rows}
names = {"attention", "attention_back", "attention_gradient", "attention_own", "attention_edges", "attention_edges_back",
    "accumulate"}
assert "base" in levels and len(rows) == 2 * len(names) * len(levels), rows
assert {(r["kernel"], r["width"], r["instructions"]) for r in rows} == \
    {(n, w, l) for n in names for w in (1, 32) for l in levels}
END
}

epoch() {
    mkdir "$T/tmp"
    TMPDIR=$T/tmp exits 0 bench epoch --like arxiv --scale 0.005 --epochs 5 --repetitions 1 --json "$T/json"
    [ -z "$(ls -A "$T/tmp")" ] || die "left behind: $(ls -A "$T/tmp")"
    exits 0 bench epoch "$karate" --epochs 40 --hidden 8 --repetitions 2 --json "$T/json"
    says '(idle)'
    verify "$T/json" <<'END'
assert d["bench"] == "epoch" and d["training"]["hidden"] == 8 and d["workers"] >= 1
spread(d, "epoch_seconds")
spread(d, "profiled_epoch_seconds")
operations = [r for r in rows if not r["operation"].startswith("(")]
assert {"(idle)", "(overhead)"} < {r["operation"] for r in rows}
for r in operations:
    for name in "tasks", "seconds", "task_seconds", "bytes_per_second":
        assert positive(r[name]), (name, r)
    assert abs(r["tasks"] * r["task_seconds"] / r["seconds"] - 1) < 1e-6, r
assert abs(sum(r["share"] for r in rows) - 1) < 1e-6
whole = d["workers"] * d["mean_epoch_seconds"]
assert abs(sum(r["seconds"] for r in rows) / whole - 1) < 0.02, (sum(r["seconds"] for r in rows), whole)
assert 0 < d["overhead_share"] < 1 and 0 <= d["idle_share"] < 1
END
    exits 1 bench epoch "$T/none" --repetitions 1
    grep -qF "$T/none" "$T/err" || die "the reason is not told: $(cat "$T/err")"
}

# Cores and GPUs beside one another; without a GPU, what names cores, and the two that want one are refused.
devices() {
    unset STARPU_NCUDA
    list=cpu,auto
    [ -z "$gpu" ] || list=cuda,cpu,both
    exits 0 bench epoch "$karate" --epochs 30 --repetitions 2 --device-list $list --json "$T/json"
    says 'x the first'
    verify "$T/json" <<END
names, gpu = "$list".split(","), bool("$gpu")
devices = {e["device"]: e for e in d["devices"]}
assert list(devices) == names and devices[names[0]]["times_first"] == 1, d["devices"]
assert {r["device"] for r in rows} == set(names)
for name, e in devices.items():
    spread(e, "epoch_seconds")
    spread(e, "times_first")
    own = [r for r in rows if r["device"] == name]
    assert abs(sum(r["share"] for r in own) - 1) < 1e-6
    whole = e["workers"] * e["mean_epoch_seconds"]
    assert abs(sum(r["seconds"] for r in own) / whole - 1) < 0.02, (e, own)
    kinds = {r["kind"] for r in own}
    on_gpus = gpu and name != "cpu"
    assert kinds == ({"CPU", "CUDA"} if on_gpus else {"CPU"}), kinds
    assert ("bytes_to_gpus" in e) == ("gpu_idle_seconds" in e) == on_gpus, e
    if on_gpus:
        assert all(0 <= s <= e["mean_epoch_seconds"] * 1.001 for s in e["gpu_idle_seconds"]), e
    if name == "cuda": # the one CPU worker has only what belongs to the host
        on_cpu = {r["operation"] for r in own if r["kind"] == "CPU" and "tasks" in r}
        assert on_cpu <= {"record", "keep_best"}, on_cpu
END
    refused '--device-list' epoch "$karate" --device-list cpu,cpu
    refused '--device-list' epoch "$karate" --device-list cpu,
    [ -n "$gpu" ] && return
    for name in cuda both; do
        exits 2 train "$karate" --device $name
        sentence "--device $name: " "$T/err"
    done
    exits 1 bench epoch "$karate" --device-list cpu,cuda --epochs 3 --repetitions 1
    sentence "--device cuda: " "$T/err"
}

schedulers() {
    exits 0 bench schedulers "$karate" --epochs 30 --policies lws,eager,dmda --workers-list 1,2 --repetitions 2 \
        --json "$T/json" --remember
    says 'fastest'
    verify "$T/json" <<'END'
assert d["bench"] == "schedulers" and d["same_losses"] is True and d["fastest"] in ("lws", "eager", "dmda")
assert {(r["scheduler"], r["workers"]) for r in rows} == {(s, w) for s in ("lws", "eager", "dmda") for w in (1, 2)}
for r in rows:
    assert r["ending"] == "done" and r["runs"] == 2
    spread(r, "epoch_seconds")
    assert abs(r["busy_share"] + r["idle_share"] + r["overhead_share"] - 1) < 0.02, r
    assert len(r["tasks_per_worker"]) == len(r["bytes_per_worker"]) == r["workers"]
    assert abs(sum(r["tasks_per_worker"]) / r["tasks_per_epoch"] - 1) < 1e-6
    assert positive(r["task_overhead_seconds"])
END
    remembered=$(sed -n 's/.*"scheduler": *"\(.*\)".*/\1/p' "$XDG_CACHE_HOME/starling/scheduler.json")
    exits 0 train "$karate" --epochs 3
    says "scheduler $remembered"
    exits 0 info machine
    says "$remembered, the fastest on"
    STARPU_SCHED=prio exits 0 train "$karate" --epochs 3
    says 'scheduler prio'
    STARPU_SCHED=home exits 0 train "$karate" --epochs 3
    says 'scheduler home'
    [ ! -s "$T/err" ] || die "STARPU_SCHED=home: $(cat "$T/err")"
}

choices() {
    exits 0 generate community "$T/two" --vertices 60 --classes 3
    exits 0 bench choices "$karate" "$T/two" --preset kipf --hidden-list 4 --repetitions 2 --seconds 0 --json "$T/json"
    says 'geometric mean'
    verify "$T/json" <<'END'
assert d["bench"] == "choices" and d["compared"] <= len(rows) == 14 and d["above"] <= d["compared"]
assert {(r["dataset"], r["choice"]) for r in rows} == {(n, c) for n in ("karate", "two") for c in (
    "vertex order", "tiles", "column blocks", "product order", "scheduler", "cached aggregate",
    "feature form")}
for r in rows:
    if r["best"] == "auto":
        assert "regret" not in r
        continue
    assert 0 < r["regret_low"] <= r["regret"] <= r["regret_high"], r
    # a ratio of means of two rounds is between the ratios of the rounds, which the interval of two rounds tells (t = 12.71)
    apart = (r["regret_high"] / r["regret"]) ** (1 / 12.71) * (1 + 1e-6)
    assert r["regret"] / apart <= r["seconds"] / r["best_seconds"] <= r["regret"] * apart, r
END
}

# A training that does not end in time is killed, and said to be so.
hanging() {
    exits 0 bench schedulers "$karate" --epochs 10000000 --policies lws --workers-list 1 --limit 1 --json "$T/json"
    says 'timed out'
    verify "$T/json" <<'END'
assert rows[0]["ending"] == "timed out" and rows[0]["runs"] == 0 and "reason" in rows[0] and d["fastest"] is None
END
}

profiled_training() {
    exits 0 train "$karate" --epochs 20 --profile --log "$T/log"
    says "the workers' time"
    [ -n "$python" ] || { echo "skip  no python3 to read the JSON"; return; }
    tail -n 1 "$T/log" >"$T/json"
    $python - "$T/json" <<'END'
import json, sys
p = json.load(open(sys.argv[1]))["profile"]
assert p["epochs"] == 18 and p["tasks"] == sum(w["tasks"] for w in p["workers"]) == \
    sum(o["tasks"] for o in p["operations"])
for total in "busy_seconds", "idle_seconds", "overhead_seconds":
    assert abs(p[total] - sum(w[total] for w in p["workers"])) < 1e-6 + 0.02 * p["seconds"], total
whole = p["seconds"] * len(p["workers"])
assert abs(p["busy_seconds"] + p["idle_seconds"] + p["overhead_seconds"] - whole) < 0.02 * whole
assert abs(sum(o["seconds"] for o in p["operations"]) - p["busy_seconds"]) < 1e-6
for member in "busy_seconds", "idle_seconds", "overhead_seconds", "tasks":
    assert abs(sum(k[member] for k in p["kinds"]) - p[member]) < 1e-6 + 0.02 * p["seconds"], member
assert sum(k["workers"] for k in p["kinds"]) == len(p["workers"])
END
}

wrong_words() {
    exits 1 bench machine --json "$T/none/json"
    grep -qF "$T/none/json: cannot write" "$T/err" || die "$(cat "$T/err")"
    refused 'machine, gemm' nothing
    refused 'machine, gemm'
    refused --megabytes machine --megabytes -1
    refused --width machine --width 16,17
    refused --width machine --width 16,
    refused 'one argument too many' machine more
    refused '--json' machine --jason "$T/json"
    refused --shapes gemm --shapes 3x4
    refused --shapes gemm --shapes 3x4x5:q
    refused --shapes gemm --shapes 3x4x5,
    refused --degree spmm --vertices 10 --degree 11
    refused --width spmm --width 0
    refused --width kernels --width 0
    refused --degree kernels --vertices 10 --degree 11
    refused 'no kernel is "nonsense"' kernels --kernel accumulate,nonsense
    refused --instructions kernels --instructions base,v2
    refused --remember spmm --vertices 10 --degree 3 --remember
    refused --like epoch
    refused mpirun epoch "$karate" --tiles-list 4
    refused --like schedulers
    refused --like epoch "$karate" --like arxiv
    refused --like spmm --dataset "$karate" --like arxiv
    refused '--hidden' epoch "$karate" --hiden 5
    refused '--hidden' epoch "$karate" --hidden 0
    refused '--workers-list' schedulers "$karate" --workers 2
    refused '--policies' schedulers "$karate" --polices lws
    refused 'no policy "nonsense"' schedulers "$karate" --policies lws,nonsense
    refused '--workers-list' schedulers "$karate" --workers-list 0
    refused '--log' epoch "$karate" --log "$T/log"
    refused 'DATASET' choices
    refused '--hidden-list' choices "$karate" --hidden 5
    refused '--tiles' choices "$karate" --tiles 2
}

help_and_manual() {
    exits 0 help bench
    says 'starling bench machine'
    says '--policies'
    exits 0 bench epoch --help
    says 'usage: starling bench epoch'
    exits 0 man bench
    says '"starling bench schedulers"'
}

[ -x "$STARLING" ] || { echo "no program $STARLING"; exit 1; }
check "help and the manual" help_and_manual
check "wrong words: one sentence, status 2" wrong_words
check "bench --remember without a place" forgetful
check "bench machine" machine
check "train --profile" profiled_training
check "bench gemm" gemm
check "bench spmm" spmm
check "bench kernels" kernels
check "bench spmm --device cuda" device
check "bench gemm --device cuda" device_gemm
check "bench epoch" epoch
check "bench epoch --device-list" devices
check "bench schedulers" schedulers
check "bench choices" choices
check "a training that hangs" hanging
finish
