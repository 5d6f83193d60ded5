#!/bin/sh
# The fields of logs are those that docs/RUNNING.md lists. One line per case.
. "${top_srcdir:-${srcdir:-.}}/tests/ranks.sh" || exit 1
command -v python3 >/dev/null 2>&1 || { echo "no python3 to read logs"; exit 77; }
page=${karate%/examples/karate}/docs/RUNNING.md

# Of all kinds: each has fields that the others lack.
runs() {
    "$STARLING" generate community "$T/graph" --vertices 600 --classes 4 --degree 6 --features 8 >"$T/out" || exit 1
    printf '{"nodes": 600, "class_names": ["a", "b", "c", "d"]}\n' >"$T/graph/meta.json"
    cd "$T" || exit 1
    set -- train graph --epochs 2 --eval-every 1 --hidden 8 --workers 1 --quiet
    run 1 "$@" --profile --metric macro-f1 --rows needed --log one || die "$(cat err)"
    run 1 "$@" --submodels 2 --share none --log ensemble || die "$(cat err)"
    run 1 "$@" --submodels 2 --log blocks || die "$(cat err)"
    run 2 "$@" --log two || die "$(cat err)"
    run 2 "$@" --distribution vertex-cut --log cut || die "$(cat err)"
    run 2 "$@" --groups 2x1 --preload-hops auto --log groups || die "$(cat err)"
    run 1 "$@" --epochs 30 --optimizer sgd --lr 1e6 --log broken && die "finite"
    return 0
}

listed() {
    cd "$T" || exit 1
    python3 - "$page" one ensemble blocks two cut groups broken <<'PYTHON' || die "other fields"
import json, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
table = text[text.index("## Fields of the log"):text.index("## Groups and batches in the log")]
names = re.compile("`([^` ]+)`").findall
rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in table.splitlines() if line.startswith("| `")]
listed = {(names(row[0])[0], field): row[2] for row in rows for field in names(row[1])}
wrong, seen = [], set()
for path in sys.argv[2:]:
    for event in map(json.loads, open(path)):
        for key, value in event.items():
            key = re.sub("macro_f1$", "METRIC", key)
            field = event["event"], key
            seen.add(field)
            if key != "event" and field not in listed:
                wrong.append(f"{path}: {field} is not listed")
            elif isinstance(value, dict) and key != "configuration":
                where = text if "below" in listed[field] else listed[field]
                wrong += [f"{path}: {field} has {k}, which is not listed" for k in value if k not in names(where)]
# A stop within an epoch is a matter of luck.
wrong += [f"{field} is listed, and in no log" for field in sorted(set(listed) - seen)
          if field not in {("start", "first_step"), ("end", "unfinished")}]
if len(listed) < 50 or wrong:
    sys.exit("\n".join(wrong) or "an empty table")
PYTHON
}

check "runs of all kinds" runs
check "fields that are listed" listed
finish
