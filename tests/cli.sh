#!/bin/sh
# The program as a user meets it: commands, files, exit statuses, what it says and where. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
python=
command -v python3 >/dev/null 2>&1 && python3 -c 'import json' 2>/dev/null && python=python3

# ---- How a case is written ----

# refused STATUS TEXT ARGUMENT ...: one sentence on stderr, which holds TEXT.
refused() {
    wanted=$1 text=$2
    shift 2
    exits "$wanted" "$@"
    [ "$(wc -l <"$T/err")" -eq 1 ] || die "not one line on stderr: $(cat "$T/err")"
    sentence "$text" "$T/err"
    [ ! -s "$T/out" ] || die "something on stdout: $(cat "$T/out")"
}

silent() {
    [ ! -s "$T/err" ] || die "on stderr: $(cat "$T/err")"
}

says() {
    grep -qF -e "$1" "$T/out" || die "no \"$1\" in: $(cat "$T/out")"
}

# The number after WORDS in the closing table.
table() {
    sed -n "s/^  $1  *//p" "$T/out"
}

# waits COMMAND ...: until it succeeds, for a minute at most.
waits() {
    for _ in $(seq 60); do
        "$@" 2>/dev/null && return
        sleep 1
    done
}

# Every value of MEMBER in a log that is a number or null.
values() { # MEMBER FILE
    sed -n "s/.*\"$1\":\\([-0-9n][^,}]*\\).*/\\1/p" "$2"
}

# is_less A B, numbers.
is_less() {
    awk "BEGIN { exit !($1 < $2) }"
}

# ---- A first run ----

train_karate() {
    exits 0 train "$karate" --epochs 100 --log "$T/log" --checkpoint "$T/ck"
    silent
    says 'karate: 34 vertices, 156 adjacency entries, 34 features, 2 classes'
    says 'seconds per epoch'
    accuracy=$(table 'test accuracy')
    is_less 0.8 "$accuracy" || die "a test accuracy of $accuracy"
    [ -s "$T/ck" ] || die "no checkpoint"
    for file in "$T"/ck.*; do
        [ ! -e "$file" ] || die "$file is left"
    done
}

log_names() {
    exits 0 train "$karate" --epochs 25 --log "$T/log"
    [ "$(wc -l <"$T/log")" -eq 27 ] || die "$(wc -l <"$T/log") lines instead of 27"
    if [ -z "$python" ]; then
        for word in configuration versions machine epoch loss train_accuracy val_accuracy seconds eval_seconds \
            test_accuracy best_epoch epochs epoch_seconds_median peak_memory_bytes tasks_per_epoch bytes_sent traffic_per_epoch; do
            grep -q "^{.*\"$word\":.*}\$" "$T/log" || die "no \"$word\" in the log"
        done
        return
    fi
    $python - "$T/log" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
start, epochs, end = lines[0], lines[1:-1], lines[-1]
def number(x): return isinstance(x, (int, float)) and not isinstance(x, bool)
assert start["event"] == "start" and end["event"] == "end"
for name in "configuration", "versions", "machine":
    assert isinstance(start[name], dict), name
for name in "starling", "starpu", "mpi", "cblas", "onednn", "hwloc", "cuda", "compiler", "flags":
    assert isinstance(start["versions"][name], str), name
for name in "host", "processor", "scheduler":
    assert isinstance(start["machine"][name], str), name
for name in "cores", "threads", "numa_nodes", "memory_bytes", "ranks", "workers_per_rank", "cores_per_rank":
    assert number(start["machine"][name]) and start["machine"][name] >= 1, name
assert start["machine"]["gpus_per_rank"] >= 0 and start["machine"]["gpus_send"] in (False, True)
assert start["graph"]["name"] == "karate" and start["graph"]["vertices"] == 34
assert start["configuration"]["hidden"] == 64 and start["configuration"]["epochs"] == 25
assert [e["event"] for e in epochs] == ["epoch"] * 25
assert [e["epoch"] for e in epochs] == list(range(1, 26))
for e in epochs:
    for name in "loss", "train_accuracy", "seconds":
        assert number(e[name]), name
    evaluated = e["epoch"] in (10, 20, 25)
    assert ("val_accuracy" in e) == evaluated and ("eval_seconds" in e) == evaluated, e
for name in ("test_accuracy", "val_accuracy", "best_epoch", "epochs", "epoch_seconds_median", "seconds",
             "peak_memory_bytes", "tasks_per_epoch"):
    assert number(end[name]), name
assert end["epochs"] == 25 and end["best_epoch"] in (10, 20, 25)
assert end["traffic_per_epoch"] == {"bytes_sent": [0], "bytes_received": [0], "rows_received": [0], "sums_received": [0],
    "adjacency_received": [0], "messages": [0]}
assert end["bytes_sent"] == [0] and end["peak_memory_bytes"] > 1e6 and end["tasks_per_epoch"] > 10
assert sum(e["seconds"] for e in epochs) <= end["seconds"]
END
}

# An evaluation in every epoch with --patience, or as often as asked.
log_evaluations() {
    exits 0 train "$karate" --epochs 12 --eval-every 5 --log "$T/log"
    [ "$(grep -c val_accuracy "$T/log")" -eq 4 ] || die "not evaluated in epochs 5, 10, 12 and at the end"
    exits 0 train "$karate" --epochs 12 --patience 12 --log "$T/log"
    [ "$(grep -c val_accuracy "$T/log")" -eq 13 ] || die "not evaluated in every epoch"
}

# What the run chose, in the log's configuration.
configured() { # OPTION VALUE
    head -n 1 "$T/log" | grep -q "\"$1\":$2[,}]" || die "--$1 is not $2: $(head -n 1 "$T/log")"
}

# Without --epochs a run ends early, with the best weights; the log and a resumed run have what was chosen.
defaults() {
    exits 0 generate community "$T/many" --vertices 1000 --classes 4 --features 16 --degree 10 --seed 2
    exits 0 train "$T/many" --log "$T/log" --checkpoint "$T/ck"
    says 'chosen for this dataset: --patience 50 --epochs 500 --normalize-features none'
    configured patience 50
    configured epochs 500
    last=$(values epoch "$T/log" | tail -n 1)
    [ "$last" -lt 500 ] && [ $((last % 5)) -eq 0 ] || die "it ended after epoch $last"
    exits 0 train "$T/many" --resume "$T/ck" --log "$T/log" --epochs 510
    configured patience 50
    exits 0 train "$karate" --log "$T/log"
    says 'chosen for this dataset: --no-bias --normalize-features none'
    configured epochs 200
    exits 0 train "$T/many" --epochs 30 --log "$T/log"
    configured patience 0
    [ "$(values epoch "$T/log" | tail -n 1)" -eq 30 ] || die "--epochs 30 were not 30"
}

# The published configuration, of which options that are given take precedence.
preset() {
    exits 0 train "$karate" --preset kipf --log "$T/a"
    exits 0 train "$karate" --hidden 16 --epochs 200 --patience 0 --bias --normalize-features none --log "$T/b"
    values loss "$T/a" >"$T/wanted"
    values loss "$T/b" >"$T/got"
    [ "$(wc -l <"$T/wanted")" -ge 200 ] && cmp -s "$T/wanted" "$T/got" || die "other losses than with the options"
    exits 0 train "$karate" --preset kipf --epochs 5 --hidden 9 --log "$T/log" --checkpoint "$T/ck"
    configured hidden 9
    configured epochs 5
    exits 0 train "$karate" --preset strong --model gat --epochs 3 --hidden 8 --log "$T/log" --checkpoint "$T/strong"
    configured hidden 8
    configured heads 1
    configured residual '"linear"'
    exits 0 train "$karate" --model gat --layers 3 --hidden 8 --heads 1 --residual linear --classifier linear --linear-init pytorch --norm-layers row \
        --bias --activation relu --lr 0.001 --dropout 0.5 --attention-dropout 0 --input-dropout 0 --weight-decay-all --patience 0 --epochs 3 \
        --log "$T/b"
    values loss "$T/log" >"$T/wanted"
    values loss "$T/b" >"$T/got"
    [ "$(wc -l <"$T/wanted")" -ge 3 ] && cmp -s "$T/wanted" "$T/got" || die "other losses than with the options of strong"
    refused 2 '--preset strong: expected --model gcn, sage or gat' train "$karate" --preset strong --model gin
    refused 2 '--preset kipf: --resume' train "$karate" --preset kipf --resume "$T/ck" --epochs 9
}

# Weights that decay in each step to nothing leave one class for all.
underfitted() {
    exits 0 train "$karate" --epochs 5 --optimizer sgd --momentum 0 --lr 1e-6 --weight-decay 1e6 --weight-decay-all --bias \
        --log "$T/log"
    says 'underfitted: training accuracy is near the share of the largest class'
    grep -q '"underfitted":true' "$T/log" || die "the log does not say so"
    exits 0 train "$karate" --epochs 100 --log "$T/log"
    ! grep -q underfitted "$T/out" || die "a good run says that it is underfitted"
    grep -q '"underfitted":false' "$T/log" || die "the log says that a good run is underfitted"
}

quiet() {
    exits 0 train "$karate" --epochs 5 --quiet
    silent
    [ ! -s "$T/out" ] || die "on stdout: $(cat "$T/out")"
}

# On a terminal a bar, with the time that is left; it is gone at the end.
bar() {
    on_terminal stderr train "$karate" --epochs 3000 --patience 0
    python3 - "$T/screen" <<'PYTHON' || die "no bar"
import re, sys
drawn = re.sub("\033\\[\\d*m", "", open(sys.argv[1], newline="").read()).split("\r")
assert any(re.search(r"\[#+\.+\] epoch \d+/3000  loss .* \d+ s left", line) for line in drawn), drawn[-3:]
assert "3000/3000" in drawn[-2] and drawn[-1] == "\033[K", drawn[-2:]
PYTHON
}

# Lines wherever there is no bar: Open MPI gives ranks a terminal as stdout, and a pipe as stderr.
lines_without_bar() {
    on_terminal stdout train "$karate" --epochs 20 --eval-every 5
    [ ! -s "$T/beside" ] || die "on stderr: $(cat "$T/beside")"
    [ "$(sed -n 's/^epoch \([0-9]*\)\/20 .*/\1/p' "$T/screen" | tr '\n' ' ')" = "5 10 15 20 " ] || die "$(cat "$T/screen")"
}

same_again() {
    exits 0 train "$karate" --epochs 20 --log "$T/a" --seed 3
    exits 0 train "$karate" --epochs 20 --log "$T/b" --seed 3
    exits 0 train "$karate" --epochs 20 --log "$T/c" --seed 4
    values loss "$T/a" >"$T/a.losses"
    values loss "$T/b" | cmp -s - "$T/a.losses" || die "the same run has other losses"
    values loss "$T/c" | cmp -s - "$T/a.losses" && die "another seed has the same losses"
    return 0
}

versions_and_help() {
    exits 0 version
    says starling
    exits 0 --help
    says 'starling COMMAND'
    exits 0 help train
    says --clip-norm
    exits 0 predict --help
    says --embeddings
    silent
    exits 0 train "$karate" --epochs 1 --workers 1 --tiles 1
    says '1 epoch on 1 rank x 1 worker, 1 tile, scheduler'
}

# Two screens of 24 lines have the options that people use.
short_help() {
    exits 0 train --help
    lines=$(wc -l <"$T/out")
    [ "$lines" -le 48 ] || die "$lines lines"
    says '--distribution KIND'
    ! grep -q -- --clip-norm "$T/out" || die "every option"
    mv "$T/out" "$T/short"
    exits 0 train --help=all
    grep -o '^  --[^ ]*' "$T/out" | sort >"$T/all"
    grep -o '^  --[^ ]*' "$T/short" | sort | comm -23 - "$T/all" | grep . && die "options that are none"
    grep -qx "All $(wc -l <"$T/all") options: starling train --help=all" "$T/short" || die "no word of other options"
    exits 0 help train
    grep -o '^  --[^ ]*' "$T/out" | sort | diff - "$T/all" || die "help train has other options"
}

# Every command and part has a page, without a warning where a program reads it.
manual() {
    exits 0 help
    commands=$(sed -n 's/^  \([a-z]*\) .*/\1/p' "$T/out" | grep -vE '^(help|man|completion|version)$')
    [ "$(echo "$commands" | wc -l)" -ge 8 ] || die "commands: $commands"
    exits 0 man
    cp "$T/out" "$T/page"
    for command in $commands; do
        grep -q "^.BR starling.-$command (1)" "$T/page" || die "the program's page has no $command"
        exits 0 man "$command"
        says ".TH STARLING-$(echo "$command" | tr a-z A-Z)"
        command -v groff >/dev/null 2>&1 || continue
        groff -man -Tascii -ww -Wbreak "$T/out" 2>"$T/groff" >/dev/null || die "groff fails"
        [ ! -s "$T/groff" ] || die "$command: $(cat "$T/groff")"
    done
    refused 2 'the nearest is "train"' man trian
}

# completes WORDS ... : the last word is completed; the candidates are in $T/words.
completes() {
    # shellcheck disable=SC2016
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _starling; printf "%s\n" "${COMPREPLY[@]}"' \
        - "$T/bash" starling "$@" >"$T/words" || die "bash fails"
}

completion() {
    refused 2 'completion fish: expected bash or zsh' completion fish
    exits 0 completion zsh
    cp "$T/out" "$T/zsh"
    if command -v zsh >/dev/null 2>&1; then zsh -n "$T/zsh" || die "no zsh"; fi
    command -v bash >/dev/null 2>&1 || return 0
    exits 0 completion bash
    cp "$T/out" "$T/bash"
    completes tr
    [ "$(cat "$T/words")" = train ] || die "tr: $(cat "$T/words")"
    completes train karate --hid
    [ "$(cat "$T/words")" = --hidden ] || die "--hid: $(cat "$T/words")"
    completes train --model s
    [ "$(tr '\n' ' ' <"$T/words")" = "sage sgc " ] || die "--model s: $(cat "$T/words")"
    completes bench s
    [ "$(tr '\n' ' ' <"$T/words")" = "spmm schedulers " ] || die "bench s: $(cat "$T/words")"
    completes bench spmm --
    grep -qx -- --width "$T/words" || die "bench spmm: $(cat "$T/words")"
    completes generate c
    [ "$(cat "$T/words")" = community ] || die "generate c: $(cat "$T/words")"
    completes generate community --cl
    [ "$(cat "$T/words")" = --classes ] || die "generate community --cl: $(cat "$T/words")"
    completes generate rmat out --edge
    [ "$(cat "$T/words")" = --edge-factor ] || die "generate rmat --edge: $(cat "$T/words")"
}

# ---- Words that are wrong ----

usage_errors() {
    refused 2 'starling help'
    refused 2 '"train"' trian "$karate"
    refused 2 usage train
    refused 2 "too many" train "$karate" more
    refused 2 'has 34 vertices (expected at most 34 batches)' train "$karate" --batches co:100000
    refused 2 'has 34 vertices (expected at most 34 clusters)' train "$karate" --batches clusters:35,2
    refused 2 'has 34 vertices (expected at most 34 batches)' plan "$karate" --ranks 2 --batches co:35
    refused 2 usage predict "$karate"
    refused 2 'the nearest is --hidden' train "$karate" --hiden 5
    refused 2 '; the nearest is gcn' train "$karate" --model gnc
    refused 2 '; the nearest is spmm' bench spnm
    refused 1 "${karate}s: cannot open: No such file or directory; the nearest is $karate" train "${karate}s"
    refused 1 'nothinglikeit: cannot open: No such file or directory' train "$T/nothinglikeit"
    refused 2 'the nearest is --features' generate community "$T/g" --feature 4
    refused 2 'the nearest is --lr' train "$karate" --learning-rate 0.1
    refused 2 'no option is near it' train "$karate" --batch-size 32
    refused 2 'unknown command "quicksort": see starling help' quicksort
    refused 2 '--hidden' train "$karate" --hidden
    refused 2 '--hidden' train "$karate" --hidden 0
    refused 2 '--hidden' train "$karate" --hidden=16x
    refused 2 '--epochs' train "$karate" --epochs 1e3
    refused 2 '--dropout' train "$karate" --dropout 1
    refused 2 '--dropout' train "$karate" --dropout nan
    refused 2 '--input-dropout' train "$karate" --input-dropout -0.5
    refused 2 '--norm' train "$karate" --norm column
    refused 2 '--scheduler' train "$karate" --scheduler nonsense
    refused 2 '--checkpoint' train "$karate" --checkpoint-every 5
    refused 1 '--log' train "$karate" --log "$T/none/log"
    refused 2 'there is no "star", expected one of: bter, community, like, rmat' generate star "$T/g"
    refused 2 'expected one of: bter, community, like, rmat' generate "$T/g" --seed 3
    refused 2 'generate what?' generate
    refused 2 'starling generate like DIRECTORY' generate like
    refused 2 "$karate" convert "$karate" "$karate"
    [ ! -e "$T/g" ] || die "something was written"
}

# 2: another command line helps; 1: files or numbers do. The same for all commands.
exit_statuses() {
    missing=$T/none/file
    printf '{"hiden": 3}\n' >"$T/odd.json"
    for line in "predict $missing $karate" "evaluate $missing $karate" "train $karate --resume $missing" "train $karate --config $missing" \
        "train $karate --config $T/odd.json" "train $karate --log $missing" "train $karate --dag $missing" "train $karate --report $missing" \
        "train $karate --trace $missing" "train $karate --checkpoint $missing" "report $missing" "report $T/odd.json" "info $missing" \
        "convert $missing $T/new" "convert $karate $missing" "generate community $missing" "plan $missing --ranks 2" \
        "plan $karate --ranks 2 --machine $missing" "partition $missing --method libra --parts 2" \
        "train $karate --optimizer sgd --lr 1e6 --quiet"; do
        # shellcheck disable=SC2086 # words
        refused 1 '' $line
    done
    for line in "train" "train $karate more" "train $karate --lr x" "train $karate --device gpu" "train $karate --keep first" \
        "train $karate --grid 2x2x1" "train $karate --model gat --hops 2" "train $karate --loss sigmoid --metric mse" \
        "train $karate --split 20/0/rest --keep best" "generate" "generate rmat" "convert $karate" "report" "plan $karate" \
        "plan $karate --ranks 2 --machine nonsense" "help nonsense" "man nonsense" "completion" "bench nonsense"; do
        # shellcheck disable=SC2086 # words
        refused 2 '' $line
    done
    [ ! -e "$T/new" ] || die "something was written"
}

# Other programs' words for values; more workers than there are cores.
hints() {
    refused 2 '--device: expected one of: auto cpu cuda both, not "gpu"; the nearest is cuda' train "$karate" --device gpu
    refused 2 'not "float32"; the nearest is fp32' train "$karate" --precision float32
    refused 2 'not "auc"; the nearest is roc-auc' train "$karate" --metric auc
    refused 2 'not "both"; the nearest is sym' train "$karate" --norm both
    exits 0 train "$karate" --epochs 1 --workers 65536
    grep -Eq '^starling: --workers 65536: this machine has [0-9]+ processors?, which [0-9]+ workers share \(expected at most [0-9]+\)$' \
        "$T/err" || die "$(cat "$T/err")"
    exits 0 train "$karate" --epochs 1 --workers 65536 --quiet
    silent
    exits 0 train "$karate" --epochs 1 --workers 1
    silent
}

# A number that stands for something is words in help and man pages; numbers that are numbers stay.
defaults_in_words() {
    for words in 'input-dropout P .*default: as --dropout)' 'patience N .*default: 50 with at least 100 validation vertices, else 0)' \
        'workers N .*default: every core but those that serve GPUs)' 'checkpoint-every N .*default: never)' 'seed N .*default 0)'; do
        exits 0 help train
        tr '\n' ' ' <"$T/out" | sed 's/  */ /g; s/ --\([a-z-]*\) \([A-Z]\)/\n--\1 \2/g' >"$T/rows"
        grep -q -e "^--$words" "$T/rows" || die "no $words in help"
        exits 0 man train
        grep -q -e "$(echo "$words" | sed 's/.*default/default/; s/-/\\\\-/g')" "$T/out" || die "no $words in the man page"
    done
    for command in train predict evaluate partition plan convert; do
        exits 0 help $command
        ! grep -q 'default -1' "$T/out" || die "$command has a default of -1"
    done
    exits 0 train --help
    tr '\n' ' ' <"$T/out" | sed 's/  */ /g' | grep -q 'epochs (default: 50 with at least 100 validation vertices, else 0)' || die "not in short help"
}

# One rank receives nothing, and the plan says so.
alone() {
    for model in gcn gat; do
        exits 0 train "$karate" --model $model --epochs 1 --log "$T/log" --quiet
        grep -q '"planned_bytes":{[^}]*"received":0[,}]' "$T/log" || die "$model: something is received"
    done
}

attention_refused() {
    refused 2 '--precision bf16: --model gat' train "$karate" --model gat --precision bf16
    refused 2 '--heads: --model gcn does not have it (expected --model gat, gatv2 or transformer)' train "$karate" --heads 4
    refused 2 '--block-norm: --model sgc does not have it' plan "$karate" --ranks 2 --model sgc --block-norm batch
    refused 2 '--norm-layers: --model sgc does not have it (expected --model gcn, sage, gat, gatv2, transformer, gin, gine, jknet or rgcn)' train "$karate" \
        --model sgc --norm-layers row
    refused 2 '--norm-layers none: --model resgcn does not have it (expected row|batch)' train "$karate" --model resgcn --norm-layers none
    refused 2 '--block-norm batch: --norm-layers is row, and both name one option' train "$karate" --model resgcn --norm-layers row --block-norm batch
    refused 2 '--aggregator max: --model resgcn does not have it (expected gcn|mean|sum)' train "$karate" --model resgcn --aggregator max
    refused 2 '--aggregator: --model gin does not have it' train "$karate" --model gin --aggregator sum
    refused 2 "--residual linear: --model sage has a weight for a vertex's own values" train "$karate" --model sage --residual linear
    refused 2 '--residual identity: no hidden layer' train "$karate" --residual identity
    refused 2 '--residual: --model gin does not have it (expected --model gcn, sage, gat, gatv2, transformer, jknet or rgcn)' train "$karate" --model gin --residual identity
    refused 2 '--jump: --model jknet does not have it' train "$karate" --model jknet --jump sum
    refused 2 '--order double: --jump sum' train "$karate" --jump sum --order double
    refused 2 '--out-heads 2: the last layer of --model gat' train "$karate" --model gat --residual linear --out-heads 2
    refused 2 '--encoder: --model resgcn does not have it' train "$karate" --model resgcn --encoder linear
    refused 2 '--activation: --model appnp does not have it' train "$karate" --model appnp --activation elu
    refused 2 '--out-heads: with --classifier or --jump' train "$karate" --model gat --classifier linear --out-heads 2
    refused 2 '--order double: --residual linear' train "$karate" --residual linear --order double
    refused 2 '--order double: --norm-layers batch' train "$karate" --norm-layers batch --order double
    refused 2 '--order double: --model gat' train "$karate" --model gat --order double
    refused 2 '--attention-dropout -0.5' train "$karate" --model gat --attention-dropout -0.5
    refused 2 '--attention-dropout' train "$karate" --model gat --attention-dropout 1
    refused 2 '--heads' train "$karate" --model gat --heads 0
    refused 2 '--heads 256' train "$karate" --model gat --heads 256 --hidden 65
    refused 2 '--out-heads' train "$karate" --model gat --out-heads 257
    refused 2 '--preset kipf: expected --model gcn' train "$karate" --model gat --preset kipf
    refused 2 "--delay cd-2: --model gatv2 goes back over edges twice" train "$karate" --model gatv2 --distribution vertex-cut --delay cd-2
    refused 2 '--precision bf16: --model gat' plan "$karate" --ranks 2 --model gat --precision bf16
    exits 0 train "$karate" --model gat --epochs 2 --checkpoint "$T/gat"
    refused 2 '--heads 4: ' train "$karate" --resume "$T/gat" --epochs 3 --heads 4 --hidden 16
    exits 0 train "$karate" --resume "$T/gat" --epochs 3 --heads 8 --checkpoint "$T/gat"
    exits 0 train "$karate" --residual linear --norm-layers batch --classifier linear --epochs 2 --checkpoint "$T/layers"
    for option in "--residual none" "--norm-layers row" "--classifier none" "--encoder linear" "--activation elu" "--jump sum"; do
        # shellcheck disable=SC2086
        refused 2 "$option: " train "$karate" --resume "$T/layers" --epochs 3 $option
    done
    refused 2 '--norm-layers row: ' train "$karate" --resume "$T/layers" --epochs 3 --block-norm row
    exits 0 train "$karate" --model resgcn --aggregator mean --block-norm batch --epochs 2 --checkpoint "$T/blocks" --log "$T/blocks.log"
    exits 0 train "$karate" --resume "$T/blocks" --epochs 3 --norm-layers batch --block-aggregator mean
    refused 2 'row: ' train "$karate" --resume "$T/blocks" --epochs 3 --norm-layers row
    refused 2 'sum: ' train "$karate" --resume "$T/blocks" --epochs 3 --aggregator sum
    exits 0 train "$karate" --config "$T/blocks.log" --norm-layers row --aggregator sum
    exits 0 train "$karate" --resume "$T/layers" --epochs 3 --activation relu
    exits 0 train "$karate" --resume "$T/layers" --epochs 3 --residual linear --checkpoint "$T/layers"
    exits 0 predict "$T/layers" "$karate"
}

unwritable_checkpoint() {
    refused 1 "$T/none/ck" train "$karate" --epochs 5 --checkpoint "$T/none/ck" --log "$T/unwritable.log"
    : >"$T/file"
    refused 1 "$T/file/ck" train "$karate" --epochs 5 --checkpoint "$T/file/ck"
    mkdir -p "$T/folder"
    refused 1 "$T/folder" train "$karate" --epochs 5 --checkpoint "$T/folder"
    ! grep -q '"epoch"' "$T/unwritable.log" 2>/dev/null || die "it trained all the same"
}

# The model is not lost with its place.
rescued_checkpoint() {
    rm -f "$T/log"
    mkdir "$T/place" "$T/elsewhere"
    TMPDIR=$T/elsewhere "$STARLING" train "$karate" --epochs 3000000 --seed 3 --checkpoint "$T/place/ck" --log "$T/log" \
        >"$T/out" 2>"$T/err" </dev/null &
    background=$!
    waits grep -q '"epoch":20,' "$T/log"
    rm -r "$T/place"
    kill -TERM $background
    wait $background
    status=$?
    [ $status -eq 1 ] || die "exit status $status: $(cat "$T/err")"
    sentence "$T/place/ck: cannot write: No such file or directory; the model is in $T/elsewhere/" "$T/err"
    saved=$(sed 's/.*the model is in //' "$T/err")
    exits 0 train "$karate" --epochs "$(values epoch "$T/log" | tail -n 1)" --seed 3 --checkpoint "$T/same"
    exits 0 predict "$saved" "$karate" --logits "$T/saved.npy"
    exits 0 predict "$T/same" "$karate" --logits "$T/whole.npy"
    cmp "$T/saved.npy" "$T/whole.npy" || die "another model"
}

# A run that diverges fails, and leaves the last good model.
diverged() {
    exits 0 train "$karate" --epochs 5 --checkpoint "$T/good" --quiet
    cp "$T/good" "$T/kept"
    exits 1 train "$karate" --epochs 90 --lr 1e6 --optimizer sgd --checkpoint "$T/good" --log "$T/log"
    sentence 'not finite (expected a smaller --lr than 1e+06, or --clip-norm); '"$T/good was not written" "$T/err"
    cmp "$T/good" "$T/kept" || die "the good model was overwritten"
    tail -n 1 "$T/log" | grep -q '"not_finite":{"epoch":[0-9]*,"layer":[12],"operation":"[a-z]*"}' ||
        die "not in the log: $(tail -n 1 "$T/log")"
    exits 1 train "$karate" --epochs 90 --lr 1e6 --optimizer sgd --checkpoint "$T/good" --checkpoint-every 1
    grep -q "$T/good \(holds epoch [0-9]*\|was not written\)$" "$T/err" || die "$(cat "$T/err")"
    exits 0 predict "$T/good" "$karate" --logits "$T/z.npy"
    numbers "$T/z.npy" | grep -i nan && die "the model has numbers that are not finite"
    return 0
}

# Killed after a checkpoint and resumed from it, a run has a line of every epoch in its log.
killed() {
    "$STARLING" train "$karate" --epochs 3000000 --checkpoint-every 1 --checkpoint "$T/killed" --log "$T/log" --quiet \
        >"$T/out" 2>"$T/err" </dev/null &
    background=$!
    waits test -s "$T/killed"
    sleep 1
    kill -KILL $background
    wait $background
    cp "$T/log" "$T/log.killed"
    exits 2 train "$karate" --resume "$T/killed" --epochs 1
    last=$(sed 's/.*epoch \([0-9]*\) is done already.*/\1/' "$T/err")
    [ "$last" -ge 10 ] || die "no checkpoint: $(cat "$T/err")"
    for epoch in $(seq "$last"); do
        grep -q "\"epoch\":$epoch," "$T/log.killed" || die "epoch $epoch of $last has no line"
    done
}

# In a pipe, a line per evaluation; and what was kept.
evaluations_told() {
    exits 0 train "$karate" --epochs 25
    [ "$(grep -c '^epoch [0-9]*/25  loss [0-9.]*  training [0-9.]*  validation [0-9.]*$' "$T/out")" -eq 3 ] ||
        die "not a line for epochs 10, 20 and 25: $(cat "$T/out")"
    exits 0 train "$karate" --epochs 400 --patience 5 --log "$T/log" --checkpoint "$T/ck"
    last=$(values epoch "$T/log" | tail -n 1)
    best=$(tail -n 1 "$T/log" | sed 's/.*"best_epoch":\([0-9]*\).*/\1/')
    [ "$last" -eq $((best + 5)) ] || die "it ended in epoch $last, after $best"
    says "stopped early after epoch $last: validation accuracy has not risen for 5 epochs"
    says "the weights of epoch $best, the best one, are kept"
    tail -n 1 "$T/log" | grep -q '"stopped_early":true' || die "the log does not say that it stopped early"
    grep -aq "best_epoch[^0-9]*$best[^0-9.]" "$T/ck" || die "another best epoch in the checkpoint"
    exits 0 train "$karate" --epochs 25 --log "$T/log" --checkpoint "$T/ck"
    best=$(tail -n 1 "$T/log" | sed 's/.*"best_epoch":\([0-9]*\).*/\1/')
    grep -aq "best_epoch[^0-9]*$best[^0-9.]" "$T/ck" || die "another best epoch in the checkpoint, without --patience"
    says "the weights of epoch $best, the best one, are kept"
    return 0
}

# Names that lead elsewhere: the link stays, and what it points to is written; a device is refused; one file is not two.
odd_places() {
    mkdir "$T/far"
    ln -s far/ck "$T/link"
    ln -s link "$T/link2"
    exits 0 train "$karate" --epochs 3 --checkpoint "$T/link2" --quiet
    [ -L "$T/link2" ] && [ -L "$T/link" ] || die "a link was replaced"
    exits 0 predict "$T/far/ck" "$karate" --output "$T/far/p.npy"
    ln -s far/log "$T/log-link"
    exits 0 train "$karate" --epochs 3 --log "$T/log-link" --quiet
    [ -L "$T/log-link" ] && grep -q '"end"' "$T/far/log" || die "no log through a link"
    mkfifo "$T/fifo"
    refused 1 'no regular file' train "$karate" --epochs 3 --checkpoint "$T/fifo"
    refused 1 'no regular file' predict "$T/far/ck" "$karate" --output "$T/fifo"
    [ -p "$T/fifo" ] || die "a pipe was replaced"
    refused 2 'is the file of --checkpoint' train "$karate" --epochs 3 --log "$T/new" --checkpoint "$T/far/../new"
    refused 2 'is the file of --checkpoint' train "$karate" --epochs 3 --log "$T/link" --checkpoint "$T/far/ck"
    ln "$T/far/ck" "$T/hard"
    refused 2 'is the file of --checkpoint' train "$karate" --epochs 3 --log "$T/hard" --checkpoint "$T/far/ck"
    refused 2 'is the file of --resume' train "$karate" --epochs 9 --log "$T/hard" --resume "$T/far/ck"
    exits 0 predict "$T/far/ck" "$karate" --output "$T/far/p2.npy"
    cmp "$T/far/p.npy" "$T/far/p2.npy" || die "the model was overwritten"
}

# ---- Data that is wrong ----

# The karate club with the files in "$T/$1" to be broken.
broken() {
    rm -rf "${T:?}/$1"
    cp -R "$karate" "$T/$1"
    chmod -R u+w "$T/$1"
}

data_errors() {
    refused 1 "$T/none" train "$T/none"
    mkdir "$T/empty"
    refused 1 "$T/empty" train "$T/empty"
    broken b
    head -c 200 "$karate/indptr.npy" >"$T/b/indptr.npy"
    refused 1 "$T/b/indptr.npy" train "$T/b"
    refused 1 "$T/b/indptr.npy" info "$T/b"
    refused 1 "$T/b/indptr.npy" convert "$T/b" "$T/half"
    [ ! -e "$T/half" ] || die "a half-written dataset"
    broken b
    cp "$karate/indptr.npy" "$T/b/labels.npy"
    refused 1 "$T/b/labels.npy" train "$T/b"
    broken b
    rm "$T/b/train_idx.npy"
    refused 1 'training vertex' train "$T/b"
    broken b
    cp "$karate/train_idx.npy" "$T/b/val_idx.npy"
    refused 1 "$T/b" train "$T/b"
    broken b
    rm "$T/b/val_idx.npy"
    refused 2 '--patience' train "$T/b" --patience 5
    broken b
    rm "$T/b/labels.npy"
    refused 1 label train "$T/b"
    echo '1 2 x' >"$T/edges.txt"
    refused 1 "$T/edges.txt" info "$T/edges.txt"
}

wrong_checkpoints() {
    exits 0 train "$karate" --epochs 5 --checkpoint "$T/ck"
    exits 0 generate community "$T/other" --vertices 50 --classes 2 --features 6 --quiet
    refused 1 "$T/none" train "$karate" --resume "$T/none"
    refused 1 meta.json train "$karate" --resume "$karate/meta.json"
    refused 1 meta.json predict "$karate/meta.json" "$karate" --output "$T/p.npy"
    refused 1 'without features' train "$T/other" --resume "$T/ck" --epochs 10
    refused 1 'without features' predict "$T/ck" "$T/other" --output "$T/p.npy"
    exits 0 generate community "$T/wider" --vertices 50 --classes 2 --features 7 --quiet
    exits 0 train "$T/other" --epochs 2 --checkpoint "$T/six"
    refused 1 layer.0 train "$T/wider" --resume "$T/six" --epochs 10
    refused 1 layer.0 predict "$T/six" "$T/wider" --output "$T/p.npy"
    head -c 1000 "$T/ck" >"$T/short"
    refused 1 "$T/short" predict "$T/short" "$karate" --output "$T/p.npy"
    refused 2 "--epochs" train "$karate" --resume "$T/ck"
    [ ! -e "$T/p.npy" ] || die "predictions of no model"
}

full_disk() {
    [ -c /dev/full ] || skip "no /dev/full"
    # At once, while it trains; and in the end once more.
    rm -f "$T/out" "$T/err" # of an earlier case
    "$STARLING" train "$karate" --epochs 3000000 --quiet --log /dev/full >"$T/out" 2>"$T/err" </dev/null &
    background=$!
    waits test -s "$T/err"
    [ "$(cat "$T/err")" = 'starling: --log /dev/full: No space left on device; training goes on' ] ||
        die "the log is lost, and at once somebody says: $(cat "$T/err")"
    kill -TERM $background || die "training did not go on"
    wait $background
    status=$?
    [ $status -eq 1 ] || die "exit status $status with a log that was lost"
    [ "$(sed 1d "$T/err")" = 'starling: --log /dev/full: lines are missing' ] || die "in the end: $(cat "$T/err")"
    timeout 60 "$STARLING" train "$karate" --epochs 5 >/dev/full 2>"$T/err" && die "stdout was full, and nobody minded"
    [ "$(wc -l <"$T/err")" -eq 1 ] || die "not one line on stderr: $(cat "$T/err")"
}

# ---- Checkpoints ----

resume() {
    exits 0 train "$karate" --epochs 30 --seed 7 --hidden 9 --log "$T/whole"
    exits 0 train "$karate" --epochs 18 --seed 7 --hidden 9 --log "$T/parts" --checkpoint "$T/ck"
    exits 0 train "$karate" --epochs 30 --resume "$T/ck" --log "$T/parts"
    silent
    values loss "$T/whole" | sed -n '19,30p' >"$T/wanted"
    values loss "$T/parts" | sed -n '20,31p' >"$T/got" # the 19th is that of the first part's end
    cmp -s "$T/wanted" "$T/got" || die "other losses: $(cat "$T/wanted" "$T/got")"
}

# PATTERN (a fixed string) in the first line of a NumPy file.
npy_header() { # FILE PATTERN
    head -c 128 "$1" | tr -d '\000' | grep -aqF -e "$2" || die "$1: no $2 in: $(head -c 128 "$1" | tr -d '\000')"
}

predict() {
    exits 0 train "$karate" --epochs 60 --hidden 11 --checkpoint "$T/ck"
    trained=$(table 'test accuracy')
    exits 0 predict "$T/ck" "$karate" --output "$T/p.npy" --embeddings "$T/h.npy" --logits "$T/z.npy"
    silent
    says "test $trained"
    npy_header "$T/p.npy" "'<i4'"
    npy_header "$T/p.npy" '(34,)'
    npy_header "$T/h.npy" "'<f4'"
    npy_header "$T/h.npy" '(34, 11)'
    npy_header "$T/z.npy" '(34, 2)'
    [ "$(tail -c 136 "$T/p.npy" | tr -d '\000\001' | wc -c)" -eq 0 ] || die "classes other than 0 and 1"
    refused 1 "$T/none/p.npy" predict "$T/ck" "$karate" --output "$T/none/p.npy"
    broken unlabelled
    rm "$T/unlabelled/labels.npy" "$T"/unlabelled/*_idx.npy
    sed -i 's/"classes": *[0-9]*/"classes": 0/; s/"labelled": *[0-9]*/"labelled": 0/' "$T/unlabelled/meta.json"
    exits 0 predict "$T/ck" "$T/unlabelled" --output "$T/p2.npy"
    silent
    cmp "$T/p.npy" "$T/p2.npy" || die "other classes without labels"
    exits 0 train "$karate" --epochs 3 --layers 1 --checkpoint "$T/ck1"
    refused 2 --embeddings predict "$T/ck1" "$karate" --embeddings "$T/h1.npy"
}

# Models with layers that have no parameters, and with a hidden layer that is not aggregated.
predict_lists() {
    for options in "appnp" "sgc --patience 3" "resgcn --no-bias --keep last" "resgcn --block-norm batch --keep last" "gin --patience 3" "jknet --patience 3"; do
        # shellcheck disable=SC2086 # words
        exits 0 train "$karate" --epochs 12 --checkpoint "$T/ck" --model $options
        trained=$(table 'test accuracy')
        # shellcheck disable=SC2086 # words
        exits 0 train "$karate" --epochs 12 --stop-after 5 --checkpoint "$T/half" --model $options
        exits 0 train "$karate" --resume "$T/half" --checkpoint "$T/rest"
        for model in ck rest; do
            exits 0 predict "$T/$model" "$karate" --embeddings "$T/h.npy" --logits "$T/$model.npy"
            says "test $trained"
        done
        cmp "$T/ck.npy" "$T/rest.npy" || die "$options: other logits after --resume"
        case $options in resgcn*) ;; *) continue ;; esac
        [ -n "$python" ] || continue
        $python - "$T/ck" "$T/h.npy" "$T/ck.npy" <<'END' || die "$options: logits are not the hidden layer times the last weights"
import json, struct, sys
def floats(data): return struct.unpack("<%df" % (len(data) // 4), data)
def rows(path):
    data = open(path, "rb").read()
    return floats(data[10 + struct.unpack("<H", data[8:10])[0]:])
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
names = json.loads(data[8:8 + size])
del names["__metadata__"]
def tensor(name):
    begin, end = names[name]["data_offsets"]
    return floats(data[8 + size + begin:8 + size + end])
last = "layer.%d." % max(int(name.split(".")[1]) for name in names)
inner, classes = names[last + "weight"]["shape"]
w, b = tensor(last + "weight"), tensor(last + "bias") if last + "bias" in names else [0.0] * classes
h, z = rows(sys.argv[2]), rows(sys.argv[3])
for r in range(34):
    for j in range(classes):
        sum_ = b[j] + sum(h[r * inner + i] * w[i * classes + j] for i in range(inner))
        assert abs(sum_ - z[r * classes + j]) < 1e-4, (r, j, sum_, z[r * classes + j])
END
    done
}

# SIGNAL ends a run after its epoch, with a checkpoint that can be resumed, as a success. Missed, the run ends by itself
# after some half a minute, and is not a success here.
interrupt() {
    rm -f "$T/ck" "$T/log"
    # A shell without terminal ignores SIGINT in what it starts in the background.
    env --default-signal "$STARLING" train "$karate" --epochs 300000 --log "$T/log" --checkpoint "$T/ck" >"$T/out" 2>"$T/err" </dev/null &
    background=$!
    waits grep -q '"epoch":20,' "$T/log"
    kill -"$1" $background
    wait $background
    status=$?
    [ $status -eq 0 ] || die "exit status $status: $(cat "$T/err")"
    silent
    says 'stopped on request'
    last=$(values epoch "$T/log" | tail -n 1)
    [ "$(tail -n 1 "$T/log" | sed 's/.*"epochs":\([0-9]*\).*/\1/')" -eq "$last" ] || die "the log's end is not its end"
    tail -n 1 "$T/log" | grep -q '"stopped":true' || die "the log does not say that it was stopped"
    exits 0 train "$karate" --epochs "$last" --checkpoint "$T/ck2"
    exits 0 predict "$T/ck" "$karate" --logits "$T/z.npy"
    exits 0 predict "$T/ck2" "$karate" --logits "$T/z2.npy"
    cmp "$T/z.npy" "$T/z2.npy" || die "not the parameters of epoch $last"
    exits 0 train "$karate" --resume "$T/ck" --epochs $((last + 3)) --log "$T/log"
    [ "$(values epoch "$T/log" | tail -n 1)" -eq $((last + 3)) ] || die "not resumed after epoch $last"
}

# ---- Data from elsewhere ----

generated() {
    exits 0 generate community "$T/communities" --vertices 1000 --classes 4 --features 16 --degree 10 --seed 2
    silent
    exits 0 train "$T/communities" --epochs 60
    silent
    accuracy=$(table 'test accuracy')
    is_less 0.8 "$accuracy" || die "a test accuracy of $accuracy"
    exits 0 generate community "$T/again" --vertices 1000 --classes 4 --features 16 --degree 10 --seed 2 --quiet
    for file in "$T/communities"/*.npy; do
        cmp "$file" "$T/again/${file##*/}" || die "the same seed wrote something else"
    done
}

imitated() {
    exits 0 generate like "$T/like" --name arxiv --scale 0.03 --threads 2
    silent
    exits 0 train "$T/like" --epochs 60 --hidden 64
    silent
    accuracy=$(table 'test accuracy')
    is_less 0.5 "$accuracy" || die "a test accuracy of $accuracy; the largest class has 0.2"
    refused 2 "scale is 0" generate like "$T/none" --scale 0
    refused 2 "unknown option --degree" generate like "$T/none" --degree 3
    refused 2 "unknown option --name" generate community "$T/none" --name arxiv
    [ ! -e "$T/none" ] || die "something was written"
}

# The number after WORDS that `info DATASET` prints.
told() { # DATASET WORDS
    exits 0 info "$1"
    sed -n "s/^$2  *\([0-9.]*\).*/\1/p" "$T/out"
}

# Four times the edges, and the share of joined neighbours that the source has.
generated_bter() {
    exits 0 generate community "$T/source" --vertices 2000 --classes 100 --degree 12 --quiet
    exits 0 generate bter "$T/denser" --from "$T/source" --scale 4 --features 6 --classes 5 --threads 2
    silent
    says '2000 vertices'
    says '6 features, 5 classes'
    wanted=$(told "$T/source" clustering)
    found=$(told "$T/denser" clustering)
    is_less 0.2 "$wanted" || die "the source has a clustering of $wanted"
    is_less "$wanted" "$found + 0.03" || die "a clustering of $found instead of $wanted"
    is_less "$found" "$wanted + 0.03" || die "a clustering of $found instead of $wanted"
    wanted=$(told "$T/source" 'degree  *mean')
    found=$(told "$T/denser" 'degree  *mean')
    is_less "3.9 * $wanted" "$found" && is_less "$found" "4.1 * $wanted" || die "degree $found instead of 4 x $wanted"
    refused 2 'expected --from DATASET' generate bter "$T/none" --scale 4
    refused 1 "$T/nowhere" generate bter "$T/none" --from "$T/nowhere"
    refused 2 'scale is 0, expected above 0' generate bter "$T/none" --from "$T/source" --scale 0
    refused 2 '--scale: expected a number' generate bter "$T/none" --from "$T/source" --scale much
    refused 2 'expected at most 999.5: half of the vertices' generate bter "$T/none" --from "$T/source" --scale 200
    echo '3 3' >"$T/loop.txt"
    refused 1 "$T/loop.txt: has no edges" generate bter "$T/none" --from "$T/loop.txt"
    [ ! -e "$T/none" ] || die "something was written"
}

# Graph500's graph, small: in natural order the first half of the vertices has most edges.
generated_rmat() {
    exits 0 generate rmat "$T/rmat" --scale 10 --features 5 --classes 3 --threads 2
    silent
    says '1024 vertices'
    says '5 features, 3 classes'
    exits 0 info "$T/rmat"
    says 'undirected, 0 self-loops'
    exits 0 generate rmat "$T/natural" --scale 10 --no-permute --features 5 --classes 3 --quiet
    cmp -s "$T/rmat/indices.npy" "$T/natural/indices.npy" && die "--no-permute changes nothing"
    exits 0 generate rmat "$T/arrows" --scale 6 --edge-factor 4 --a 0.4 --b 0.3 --c 0.1 --no-symmetric --quiet
    exits 0 info "$T/arrows"
    says 'directed, 0 self-loops'
    refused 2 '--scale: expected a whole number, 1 to 30, not "31"' generate rmat "$T/none" --scale 31
    refused 2 'a, b and c are 0.57, 0.3 and 0.19' generate rmat "$T/none" --b 0.3
    refused 2 'unknown option --degree' generate rmat "$T/none" --degree 3
    refused 2 'exists and is not empty' generate rmat "$T/rmat" --scale 3
    [ ! -e "$T/none" ] || die "something was written"
}

# The memory that `info` tells is what `train --plan` plans.
info_plans() {
    exits 0 train "$karate" --layers 3 --hidden 4000 --plan
    planned=$(sed -n 's/^  total  *\([0-9.]*\)$/\1/p' "$T/out")
    exits 0 info "$karate" --layers 3 --hidden 4000
    sed -n 's/^memory  *\([0-9.]*\) MiB for matrices.*/\1/p' "$T/out" |
        awk -v planned="$planned" '{ d = $1 - planned; told = 1 }
            END { exit !(told && planned > 10 && d < 1 && d > -1) }' || die "planned $planned: $(cat "$T/out")"
}

convert_round_trip() {
    exits 0 convert "$karate" "$T/copy"
    silent
    for file in "$karate"/*.npy; do
        cmp "$file" "$T/copy/${file##*/}" || exit 1
    done
    exits 0 info "$karate"
    sed 1d "$T/out" >"$T/info"
    exits 0 info "$T/copy"
    sed 1d "$T/out" | cmp -s - "$T/info" || die "another dataset: $(cat "$T/out")"
}

edge_list() {
    printf '# who follows whom\nanna,bert,2.5\nbert,carl,1\ncarl,anna,0.5\ncarl,dora,1\nbert,carl,1\n' >"$T/edges.csv"
    exits 0 convert "$T/edges.csv" "$T/edges"
    grep -q 'the third column, 0.5 to 2.5, is taken for weights' "$T/err" || die "no note of weights: $(cat "$T/err")"
    rm -r "$T/edges"
    exits 0 convert "$T/edges.csv" "$T/edges" --weights 3
    [ "$(wc -l <"$T/err")" -eq 1 ] && grep -q '1 duplicate' "$T/err" || die "no note of a duplicate: $(cat "$T/err")"
    exits 0 info "$T/edges"
    silent
    grep -q '^vertices  *4$' "$T/out" || die "not 4 vertices: $(cat "$T/out")"
    grep -q '^edges  *4 directed.*weighted' "$T/out" || die "not 4 directed edges with weights: $(cat "$T/out")"
    grep -q '^direction  *a vertex aggregates from the sources of the edges that end at it: anna from carl$' "$T/out" || die "$(cat "$T/out")"
    exits 0 convert "$T/edges.csv" "$T/turned" --weights 3 --reverse
    says ", directed: v aggregates from u of an edge u -> v, which is v -> u in $T/edges.csv"
    exits 0 info "$T/turned"
    grep -q '^direction .*: anna from bert$' "$T/out" || die "$(cat "$T/out")"
    exits 0 convert "$T/edges" "$T/turned-too" --reverse
    cmp "$T/turned/indices.npy" "$T/turned-too/indices.npy" && cmp "$T/turned/weights.npy" "$T/turned-too/weights.npy" || exit 1
    exits 0 convert "$T/edges.csv" "$T/plain" --weights none --quiet
    [ ! -e "$T/plain/weights.npy" ] || die "weights with --weights none"
    exits 0 convert "$T/edges.csv" "$T/both" --symmetrize --quiet
    exits 0 info "$T/both"
    grep -q '^edges  *4 undirected' "$T/out" || die "not 4 undirected edges: $(cat "$T/out")"
    refused 1 'there is no training vertex' train "$T/edges"
    grep -qF -e '--split 60/20/20' "$T/err" || die "no remedy: $(cat "$T/err")"
    printf '1 2\n2 3\n' >"$T/ones.txt"
    exits 0 convert "$T/ones.txt" "$T/ones"
    grep -q 'no edge has vertex 0.*--first-vertex 1' "$T/err" || die "no note of vertex 0: $(cat "$T/err")"
    rm -r "$T/ones"
    exits 0 convert "$T/ones.txt" "$T/ones" --first-vertex 1
    silent
    says ': 3 vertices'
}

# noted WORDS FILE TEXT [OPTION]...: converting the file, TEXT in printf's octal, says so.
noted() {
    words=$1 file=$2
    mkdir -p "$(dirname "$T/n/$file")"
    printf "$3" >"$T/n/$file"
    shift 3
    rm -rf "$T/noted"
    exits 0 convert "$T/n/${file%%/*}" "$T/noted" "$@"
    grep -qF -e "$words" "$T/err" || die "$file: no note \"$words\": $(cat "$T/err")"
}

# Whatever is dropped, renamed or taken for something is said.
reading_notes() {
    noted "line 1 is taken for a header: edges go from 'source' to 'target', ignored: ''" a.csv ',source,target\n0,5,6\n'
    noted "edges go from 'source' to 'target', weights are 'weight'" b.csv 'weight,source,target\n1,0,1\n'
    noted "edges go from 'source' to 'target', ignored: 'time'" c.csv 'source,target,time\n0,1,7\n'
    noted "line 1 is no header but an edge" d.txt 'u v\nv w\n'
    noted "edges go from 'from' to 'to'" e.txt 'from to\nann bob\n'
    noted "2 of 3 vertices are called by numbers, the others by names such as 'bradshaw97'" f.cites '7 8\n7 bradshaw97\n'
    noted "a vertex is called 'NaN'" g.csv 'ann,bob\nann,NaN\n'
    noted "KONECT's: vertices count from 1" out.h '%% sym unweighted\n1 2\n'
    noted "1 edge goes both ways with different weights: the weight is the larger one" i.txt '0 1 1\n1 0 2\n' --symmetrize
    noted "1 edge goes both ways: the weight is the sum" j.txt '0 1 2\n1 0 2\n1 2 1\n' --symmetrize sum
    for folder in k l m n; do
        mkdir -p "$T/n/$folder"
        echo '5,6' >"$T/n/$folder/edges.csv"
    done
    noted "column 'Unnamed: 0' is ignored: it numbers rows" k/nodes.csv 'Unnamed: 0,id,f,target\n0,5,1,0\n1,6,2,1\n'
    grep -qF "column 'target' is a feature; expected the name label" "$T/err" || die "no note of target: $(cat "$T/err")"
    grep -qF '2 columns are features: f, target' "$T/err" || die "no list of features: $(cat "$T/err")"
    noted "nodes.csv: id: id; label: y; split: none; 1 column is a feature: x; each value of 1 column is a feature: town (2)" \
        k/nodes.csv 'id,x,town,y\n5,1,bern,a\n6,,rome,b\n' --categorical town --empty-cells mean --label y
    grep -qF "column 'x': 1 of 2 cells are empty: they get the mean, 1" "$T/err" || die "no note of cells: $(cat "$T/err")"
    noted "column 'class' is a feature, for --label names another one" k/nodes.csv 'id,class,town\n5,1,bern\n6,2,rome\n' --label town
    noted "2 of 3 vertices have no label (empty, NaN)" l/nodes.csv 'id,label\n5,\n6,a\n7,NaN\n'
    noted "'unknown' is a class, of 1 vertices" m/nodes.csv 'id,label\n5,unknown\n6,a\n'
    noted "'a|b' is one class (starling convert --label-separator '|' makes it several labels)" n/nodes.csv 'id,label\n5,a|b\n6,a\n'
    noted "labels are -1 and 1 alone: 1 label is -1, no label" n/nodes.csv 'id,label\n5,-1\n6,1\n'
    noted 'is read as the only file in it that may be a graph' one/list.txt '0 1\n'
    refused 2 '--label-separator: expected one character' convert "$T/n/n" "$T/none" --label-separator ab
    refused 2 'is no folder of tables (expected no --label-separator)' convert "$T/n/a.csv" "$T/none" --label-separator '|'
    refused 2 '--symmetrize: expected one of: max sum mean' convert "$T/n/a.csv" "$T/none" --symmetrize=min
}

# A run out of its own log, and out of a file of options; the command line wins.
# of_log LOG OPTION VALUE: what the log's run had.
of_log() {
    grep -q "\"$2\":$3[,}]" "$1" || die "$1: --$2 is not $3: $(grep -o "\"$2\":[^,}]*" "$1" | head -1)"
}

# Options of the command line win, and so do options that they imply.
from_changed_log() {
    mkdir "$T/changed"
    cd "$T/changed" || exit 1
    exits 0 train "$karate" --submodels 2 --rounds 3 --hidden 8 --layers 3 --log rounds --quiet
    exits 0 train "$karate" --config rounds --log again --quiet
    values loss rounds >losses
    values loss again | cmp -s - losses || die "the same rounds have other losses"
    exits 0 train "$karate" --config rounds --epochs 8 --log eight --quiet
    of_log eight epochs 8
    of_log eight rounds 0
    exits 0 train "$karate" --hidden 12 --epochs 4 --log plain --checkpoint ck --quiet
    exits 0 train "$karate" --config plain --submodels 2 --rounds 3 --log more --quiet
    of_log more rounds 3
    of_log more hidden 12
    exits 0 train "$karate" --config plain --resume ck --epochs 6 --log on --quiet
    exits 0 train "$karate" --config plain --preset kipf --log kipf --quiet
    of_log kipf hidden 16
    of_log kipf epochs 200
    refused 2 '--heads: --model gcn does not have it' train "$karate" --config plain --heads 4
    exits 0 train "$karate" --allow-inexact --exact-epochs 2 --epochs 4 --log exact --quiet
    exits 0 train "$karate" --config exact --log exactly --quiet
    echo '{"hidden": 5, "epochs": 3}' >five
    mkfifo pipe
    cat five >pipe &
    background=$!
    exits 0 train "$karate" --config pipe --log five.log --quiet
    of_log five.log hidden 5
    echo '{"hidden": 5} 7' >seven
    refused 1 '--config seven: more after the object' train "$karate" --config seven
    echo '{"config": "five"}' >nested
    refused 1 '--config nested: config is of the command line alone' train "$karate" --config nested
    refused 2 '--trace five is the file of --config' train "$karate" --config five --trace five
    grep -q hidden five || die "the options are gone"
    # As programs wrote it that called unscaled sums published.
    echo '{"delay": "0c", "partial-sums": "published"}' >late
    exits 0 plan "$karate" --ranks 2 --config late
    grep -q 0c "$T/out" || die "plan does not take the delay: $(cat "$T/out")"
    refused 2 '--partial-sums: expected one of: scaled unscaled, not "published"; the nearest is unscaled' \
        plan "$karate" --ranks 2 --delay 0c --partial-sums published
}

from_config() {
    cd "$T" || exit 1
    exits 0 train "$karate" --model gat --hidden 3 --lr 0.01 --epochs 7 --tiles 3 --log first --checkpoint ck --quiet
    exits 0 train "$karate" --config first --log second --quiet
    for log in first second; do
        grep -o '"loss":[0-9][^,]*' $log >$log.losses
    done
    [ "$(wc -l <first.losses)" -eq 8 ] && cmp first.losses second.losses || die "other losses out of the log"
    exits 0 train "$karate" --config first --model gcn --epochs 2 --log third --quiet
    grep -q '"model":"gcn".*"hidden":3' third || die "$(head -n 1 third)"
    exits 0 train "$karate" --model gat --classifier linear --epochs 2 --log heads --quiet
    exits 0 train "$karate" --config heads --quiet
    exits 0 train "$karate" --residual linear --norm-layers batch --classifier linear --epochs 2 --log fifth --quiet
    exits 0 train "$karate" --config fifth --model resgcn --log sixth --quiet
    exits 0 train "$karate" --model resgcn --block-norm batch --epochs 2 --lr 0.01 --dropout 0.5 --layers 2 --log seventh --quiet
    for log in sixth seventh; do
        grep -o '"loss":[0-9][^,]*' $log >$log.losses
    done
    [ "$(wc -l <sixth.losses)" -ge 2 ] && cmp sixth.losses seventh.losses || die "layers of another model"
    echo '{"hidden": 5, "lr": 0.5, "bias": false}' >options
    exits 0 train "$karate" --config options --lr 0.25 --epochs 3 --log fourth --quiet
    grep -q '"hidden":5.*"bias":false.*"lr":0.25' fourth || die "$(head -n 1 fourth)"
    exits 0 plan "$karate" --ranks 2 --config options
    echo '{"hiden": 5}' >options
    refused 1 'options: unknown option "hiden" in the configuration: the nearest is hidden' train "$karate" --config options
    printf '{"hidden": 5,\n"lr": }' >options
    refused 1 '--config options, line 2: ' train "$karate" --config options
    echo '{"hidden": 0}' >options
    refused 1 'options: --hidden: ' train "$karate" --config options
    echo '[1]' >options
    refused 1 '--config options: another JSON value (expected a JSON object of options, or a log)' train "$karate" --config options
    refused 1 '--config nowhere: No such file or directory' train "$karate" --config nowhere
}

# configuration LOG: of the run, a line for each option, without its files.
configuration() {
    [ -n "$python" ] || skip "no python3"
    python3 -c 'import json, sys
for option in sorted(json.loads(sys.stdin.readline())["configuration"].items()):
    if option[0] not in ("config", "log"):
        print(*map(json.dumps, option))' <"$1" || die "no configuration in $1"
}

# wrong SENTENCE TEXT: the file of options in TOML, an octal format of printf, is refused so.
wrong() {
    printf "$2" >wrong.toml
    refused 1 "wrong.toml$1" train "$karate" --config wrong.toml
    refused 1 "wrong.toml$1" plan "$karate" --ranks 2 --config wrong.toml
}

needs_toml() {
    mkdir "$T/$1"
    cd "$T/$1" || exit 1
    : >have.toml
    "$STARLING" plan "$karate" --ranks 2 --config have.toml >"$T/out" 2>"$T/err" && return
    refused 1 '--config have.toml: built without TOML (expected JSON' plan "$karate" --ranks 2 --config have.toml
    skip "built without TOML"
}

# The same options in TOML and in JSON are the same run.
from_toml() {
    needs_toml toml
    echo '{"epochs": 3, "hidden": 20, "lr": 0.0123456789012345, "weight-decay": 0, "model": "gat", "bias": false}' >run.json
    cat >run.toml <<'END'
# a comment
epochs = 3
hidden = 0x14 # 20
'lr' = 12_345_678_901.2345e-12
"weight-decay" = 0
model = """
g\
  at"""
bias = false
END
    exits 0 train "$karate" --config run.json --log json.log --quiet
    exits 0 train "$karate" --config run.toml --log toml.log --quiet
    silent
    configuration json.log >json.options
    configuration toml.log >toml.options
    grep -qx '"hidden" 20' toml.options && grep -qx '"lr" 0.0123456789012345' toml.options || die "$(cat toml.options)"
    cmp json.options toml.options || die "another configuration: $(diff json.options toml.options)"
    values loss json.log >json.losses
    values loss toml.log | cmp -s - json.losses || die "other losses"
    exits 0 plan "$karate" --ranks 2 --config run.toml
    printf 'delay = "0c"\npartial-sums = "published"\n' >older.toml
    exits 0 plan "$karate" --ranks 2 --config older.toml

    # A mark of byte order, lines of other systems, no line end, the name in capitals; the command line wins.
    printf '\357\273\277hidden = 5\r\nbias = false\r\nepochs = 3' >WINDOWS.TOML
    exits 0 train "$karate" --config WINDOWS.TOML --epochs 4 --log five --quiet
    of_log five hidden 5
    of_log five bias false
    of_log five epochs 4
    : >empty.toml
    exits 0 train "$karate" --config empty.toml --epochs 3 --log none --quiet
    exits 0 train "$karate" --epochs 3 --log plain --quiet
    configuration none >none.options
    configuration plain | cmp -s - none.options || die "an empty file sets options"
    mkfifo pipe
    cat run.toml >pipe &
    background=$!
    refused 1 '--config pipe, line 1: ' train "$karate" --config pipe
}

wrong_toml() {
    needs_toml wrong-toml
    wrong ', line 2: ' 'hidden = 5\nlr = \n'
    grep -qF '(expected TOML)' "$T/err" || die "expected what: $(cat "$T/err")"
    wrong ', line 1: ' '{\n"hidden": 5}\n'
    wrong ', line 2: unknown option "hiden" in the configuration: the nearest is hidden' '# first\nhiden = 5\n'
    wrong ', line 2: --hidden: expected a whole number, 1 to 1048576' '\nhidden = 0\n'
    wrong ', line 1: --hidden: expected a whole number, 1 to 1048576' 'hidden = "5"\n'
    wrong ', line 1: --hidden: expected a whole number, 1 to 1048576' 'hidden = 5.0\n'
    wrong ', line 1: --hidden: expected a whole number, 1 to 1048576' 'hidden = [5, [1.5, "a", true]]\n'
    grep -qF ', not [5,[1.5,"a",true]]' "$T/err" || die "not the array: $(cat "$T/err")"
    wrong ', line 1: --bias: expected true or false, not 1' 'bias = 1\n'
    wrong ', line 1: --bias: expected true or false, not "yes"' 'bias = "yes"\n'
    wrong ', line 1: --lr: expected a number' 'lr = true\n'
    wrong ', line 1: --model: expected one of' 'model = 5\n'
    wrong ', line 1: --model: expected one of' 'model = "gcm"\n'
    wrong ', line 3: table train (expected options outside of tables)' 'hidden = 5\n\n[train]\nepochs = 3\n'
    wrong ', line 1: table train (expected options outside of tables)' 'train.epochs = 3\n'
    wrong ', line 1: table train (expected options outside of tables)' 'train = {epochs = 3}\n'
    wrong ', line 1: train: a date, a time or another value' '[[train]]\nepochs = 3\n'
    for value in 1979-05-27 07:32:00 1979-05-27T07:32:00Z inf -nan '[1, 1979-05-27]' '[{a = 1}]' '"a\\u0000"'; do
        wrong ', line 2: seed: a date, a time or another value that options do not have' "hidden = 5\nseed = $value\n"
    done
    wrong ', line 1: ' 'seed = 1979-05-27Tx\n'
    wrong ', line 1: hidden' '"hidden\\u0000x" = 5\n'
    wrong ', line 3: ' 'hidden = 5\nlr = 0.1\nhidden = 6\n'
    wrong ', line 1: ' 'hidden = 5 lr = 0.1\n'
    wrong ', line 1: ' 'hidden = 99999999999999999999\n'
    wrong ', line 2: ' 'hidden = 5\nlr = 0.1\000\nbias = false\n'
    wrong ', line 1: ' 'model = "\377"\n'
    wrong ', line 1: ' '\376\377\000h'
    wrong ': config is of the command line alone' 'config = "other"\n'
    mkdir folder.toml
    refused 1 '--config folder.toml: Is a directory (expected options in TOML)' train "$karate" --config folder.toml
    refused 1 '--config nowhere.toml: No such file or directory (expected options in TOML)' train "$karate" --config nowhere.toml
}

# An edge list with numbers of its own, classes that have names, and no splits: the numbers and names are those of the
# predictions, and the splits are kept in the checkpoint.
own_names() {
    awk 'BEGIN { for (v = 0; v < 60; v++) for (k = 1; k < 4; k++)
        print 700000 - 7 * v, 700000 - 7 * (int(v / 30) * 30 + (v + k) % 30) }' >"$T/numbers.txt"
    exits 0 convert "$T/numbers.txt" "$T/own" --symmetrize
    grep -q 'renumbered' "$T/err" || die "no note of new numbers: $(cat "$T/err")"
    npy "$T/own/labels.npy" '|S3' '(60,)' "$(awk 'BEGIN { for (v = 0; v < 60; v++) printf v < 30 ? "new" : "old" }')"
    sed -i '/"classes"/d' "$T/own/meta.json"
    refused 1 'no training vertex' train "$T/own"
    refused 2 '--split 5/5' train "$T/own" --split 5/5
    exits 0 train "$T/own" --split 5/5/rest --epochs 40 --checkpoint "$T/own.ck"
    validated=$(table 'validation accuracy') tested=$(table 'test accuracy')
    exits 0 predict "$T/own.ck" "$T/own" --output "$T/own.npy" --table "$T/own.tsv"
    says "validation $validated, test $tested"
    head -n 1 "$T/own.tsv" | grep -q "^699587	[01]	[no][el][wd]$" || die "first line: $(head -n 1 "$T/own.tsv")"
    [ "$(grep -c '	0	new$' "$T/own.tsv")" -eq 30 ] || die "other classes: $(cat "$T/own.tsv")"
    od -An -v -t d8 -w8 -j128 "$T/own.ids.npy" | tr -d ' ' >"$T/own.ids"
    cut -f 1 "$T/own.tsv" | cmp - "$T/own.ids" || die "other ids"
    cp -r "$T/own" "$T/nameless" && rm "$T/nameless/vertex_ids.npy"
    exits 2 predict "$T/own.ck" "$T/nameless" --output "$T/own.npy" --quiet
    sentence "$T/own.ids.npy would be read as the ids of $T/own.npy" "$T/err"
    exits 0 predict "$T/own.ck" "$T/nameless" --output "$T/nameless.npy" --quiet
    cmp "$T/own.npy" "$T/nameless.npy" || die "other predictions without ids"
    exits 0 train "$T/own" --resume "$T/own.ck" --epochs 41
    says "validation accuracy    $validated"
    exits 0 convert "$T/own" "$T/own2" --order random --split 5/5/rest --quiet
    exits 0 train "$T/own2" --epochs 40
    [ "$(table 'test accuracy')" = "$tested" ] || die "other splits when they are stored: $(cat "$T/out")"
    exits 0 predict "$T/own.ck" "$T/own2" --table "$T/own2.tsv"
    cmp "$T/own.tsv" "$T/own2.tsv" || die "other predictions in another order"
    printf 'node,label\n1,2\n2,1\n' >"$T/labels.csv"
    refused 1 'these are labels' convert "$T/labels.csv" "$T/none"
}

# Parts lie where --out says, or in the current directory, never in a dataset; the same seed gives the same ones.
partitions() {
    exits 0 convert "$karate" "$T/cut" --quiet
    ls "$T/cut" >"$T/before"
    cd "$T" || exit 1
    for method in libra hdrf metis random; do
        exits 0 partition "$T/cut" --method $method --parts 3 --json "$T/figures.json"
        silent
        says "written to cut-$method-3.npy"
        grep -q '"parts": 3' "cut-$method-3.json" || die "no parts in $method's description"
        grep -q '"edge_balance"' "$T/figures.json" || die "no figures of $method"
        exits 0 partition "$T/cut" --method $method --parts 3 --out "$T/again.npy" --quiet
        [ ! -s "$T/out" ] || die "--quiet says: $(cat "$T/out")"
        cmp "$T/again.npy" "cut-$method-3.npy" || die "$method: other parts"
    done
    exits 0 info "$T/cut"
    printf 'a,b\nb,c\n' >"$T/edges.csv"
    exits 0 partition "$T/edges.csv" --method libra --parts 1
    [ -s edges.csv-libra-1.npy ] || die "no parts of a file"
    cd "$T/cut" || exit 1
    refused 2 '--out is missing: the current directory is a dataset' partition . --method libra --parts 3
    ls | cmp -s - "$T/before" || die "something was written into a dataset: $(ls)"
    refused 2 '--method is missing' partition "$karate" --parts 2
    refused 2 '--parts is missing' partition "$karate" --method libra
    refused 2 '--partition metsi: expected one of: libra hdrf metis random, or a .npy file; the nearest is metis' \
        train "$karate" --distribution vertex-cut --partition metsi
    refused 2 '--partition libra: expected one of: metis ptscotch, or a .npy file' train "$karate" --distribution halo --partition libra
    refused 2 '--partition metsi: expected one of: libra hdrf metis random ptscotch' plan "$karate" --ranks 2 --partition metsi
    exits 0 train "$karate" --epochs 2 --distribution halo --partition metis --quiet
    refused 2 '--parts: expected a whole number, 1 to 16384' partition "$karate" --method libra --parts 0
    refused 2 'has 34 vertices (expected no more parts)' partition "$karate" --method metis --parts 35 --out "$T/parts.npy"
    refused 2 'has 156 adjacency entries (expected no more parts)' partition "$karate" --method hdrf --parts 157 --out "$T/parts.npy"
    refused 2 'ends in .npy' partition "$karate" --method libra --parts 2 --out "$T/parts.bin"
    refused 1 "$T/nowhere/p.npy" partition "$karate" --method libra --parts 2 --out "$T/nowhere/p.npy"
}

info_machine() {
    exits 0 info machine
    silent
    says StarPU
    says memory
    # OpenBLAS may be older than the processor. A choice of the user's stays.
    grep -q '^dense products OpenBLAS' "$T/out" || return 0
    ! grep -qw avx2 /proc/cpuinfo || ! grep -q 'kernels for Prescott' "$T/out" || die "$(cat "$T/out")"
    OPENBLAS_CORETYPE=Nehalem "$STARLING" info machine >"$T/out" 2>&1 || die "$(cat "$T/out")"
    [ "$(uname -m)" != x86_64 ] || says 'kernels for Nehalem'
}

# The picture has the epoch's tasks, as the log counts them, and the record; and no arrow from a task to itself.
picture() {
    exits 0 train "$karate" --tiles 3 --epochs 3 --log "$T/log" --dag "$T/epoch.dot"
    tasks=$(sed -n 's/.*"tasks_per_epoch":\([0-9]*\).*/\1/p' "$T/log")
    drawn=$(grep -c 'label=' "$T/epoch.dot")
    [ "$drawn" -eq $((tasks + 1)) ] || die "$drawn tasks in the picture, $tasks in the log"
    grep -q 'label="spmm_set"' "$T/epoch.dot" || die "no sparse product in the picture"
    [ "$(grep -c -- '->' "$T/epoch.dot")" -ge "$tasks" ] || die "too few arrows"
    awk '$2 == "->" { sub(";", "", $3); if ($1 == $3) exit 1 }' "$T/epoch.dot" || die "a task waits for itself"
    exits 0 train "$karate" --model sage --tiles 3 --epochs 3 --dag "$T/epoch.dot"
    grep -q 'label="gemm_add"' "$T/epoch.dot" || die "no sum of products in the picture"
    refused 1 "$T/nowhere/epoch.dot: " train "$karate" --epochs 3 --dag "$T/nowhere/epoch.dot"
    refused 2 'is the file of --dag' train "$karate" --epochs 3 --log "$T/x" --dag "$T/x"
    refused 2 'is the file of --checkpoint' train "$karate" --epochs 3 --dag "$T/x" --checkpoint "$T/x"
}

# ---- All of it ----

[ -x "$STARLING" ] || { echo "no program $STARLING"; exit 1; }
check "a bar" bar
check "lines where there is no bar" lines_without_bar
check "version and help" versions_and_help
check "help in two screens" short_help
check "man pages" manual
check "completion" completion
check "exit statuses" exit_statuses
check "hints" hints
check "defaults in words" defaults_in_words
if [ -d "$karate" ]; then
    check "the example trains, without a word on stderr" train_karate
    check "the log's lines and names" log_names
    check "the log's evaluations" log_evaluations
    check "what is chosen for a dataset" defaults
    check "--preset kipf" preset
    check "an underfitted run says so" underfitted
    check "--quiet" quiet
    check "the same seed, the same losses" same_again
    check "wrong words: one sentence, status 2" usage_errors
    check "one rank plans to receive nothing" alone
    check "what attention is not defined with: one sentence, status 2" attention_refused
    check "a checkpoint that cannot be written is refused at the start" unwritable_checkpoint
    check "a checkpoint whose place is gone goes elsewhere" rescued_checkpoint
    check "a run that diverges" diverged
    check "after kill -9 the log has all epochs of the checkpoint" killed
    check "evaluations and early stops are told" evaluations_told
    check "links, pipes, and one file under two names" odd_places
    check "wrong data: one sentence, status 1" data_errors
    check "wrong checkpoints" wrong_checkpoints
    check "a full disk" full_disk
    check "--resume" resume
    check "the picture of an epoch's tasks" picture
    check "predict" predict
    check "checkpoints of lists of layers" predict_lists
    env --default-signal true 2>/dev/null && check "Ctrl-C" interrupt INT
    check "SIGTERM" interrupt TERM
    check "convert keeps every array" convert_round_trip
    check "numbers of vertices and names of classes, splits that are drawn" own_names
    check "info tells the memory that train plans" info_plans
else
    echo "FAIL  no $karate"
    failures=$((failures + 1))
fi
check "a generated graph is learnt" generated
check "the like of a published dataset is learnt" imitated
check "a denser graph with the clustering of another" generated_bter
check "a graph of Graph500's kind" generated_rmat
check "an edge list becomes a dataset" edge_list
check "what is dropped or renamed while reading is said" reading_notes
check "partitions of edges and of vertices" partitions
check "info machine" info_machine
check "options out of a file or a log" from_config
check "options in TOML" from_toml
check "wrong TOML: one sentence, its line, status 2" wrong_toml
check "a log as options, changed on the command line" from_changed_log
finish
