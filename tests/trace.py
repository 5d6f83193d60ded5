# Whether a file of --trace is what it says: trace.py FILE LOG FIRST LAST RANKS
import bisect
import collections
import json
import re
import sys

path, log, first, last, ranks = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
document = json.load(open(path))
events = document["traceEvents"]
lines = [json.loads(line) for line in open(log)]
scored = {e["epoch"] for e in lines if e["event"] == "epoch" and "val_accuracy" in e}


def wrong(text):
    sys.exit(text)


# Fields of events, as the document "Trace Event Format" has them: required, with their types, then optional.
NUMBER = (int, float)
TRACK = {"name": str, "ph": str, "pid": int, "tid": int}
FIELDS = {
    "M": ({"name": str, "ph": str, "pid": int, "args": dict}, {"tid": int}),
    "X": ({**TRACK, "cat": str, "ts": NUMBER, "dur": NUMBER, "args": dict}, {}),
    "s": ({**TRACK, "cat": str, "ts": NUMBER, "id": str}, {}),
    "f": ({**TRACK, "cat": str, "ts": NUMBER, "id": str, "bp": str}, {}),
}
METADATA = {"process_name": {"name": str}, "thread_name": {"name": str}, "thread_sort_index": {"sort_index": int}}


def has_fields(thing, required, optional):
    known = {**required, **optional}
    return set(required) <= set(thing) <= set(known) and all(
        isinstance(v, known[k]) and not isinstance(v, bool) for k, v in thing.items()
    )


def ns(microseconds):
    return round(1000 * microseconds)


if set(document) != {"traceEvents", "displayTimeUnit"} or document["displayTimeUnit"] not in ("ms", "ns"):
    wrong(f"members {set(document)}")
for e in events:
    if e.get("ph") not in FIELDS or not has_fields(e, *FIELDS[e["ph"]]):
        wrong(f"fields of {e}")
    if e["ph"] == "M" and not has_fields(e["args"], METADATA.get(e["name"], {None: None}), {}):
        wrong(f"arguments of {e}")
    if e["ph"] in "sf" and not (re.fullmatch("[0-9a-f]{1,16}", e["id"]) and e.get("bp", "e") == "e"):
        wrong(f"an arrow that Perfetto leaves out: {e}")

tracks, spans = {}, collections.defaultdict(list)
processes = {e["pid"] for e in events if e["name"] == "process_name"}
if processes != set(range(ranks)):
    wrong(f"processes {processes}")
for e in events:
    if e["name"] == "thread_name":
        tracks[e["pid"], e["tid"]] = e["args"]["name"]
    elif e["ph"] == "X":
        if e["dur"] < 0 or e["ts"] < 0:
            wrong(f"a span of negative time: {e}")
        spans[e["pid"], e["tid"]].append(e)
for track, of in spans.items():
    if track not in tracks:
        wrong(f"spans of the track {track}, which has no name")
    of.sort(key=lambda e: e["ts"])
    for a, b in zip(of, of[1:]):
        if ns(a["ts"]) + ns(a["dur"]) > ns(b["ts"]):  # Perfetto would leave out the second one
            wrong(f"two spans of {tracks[track]} at once: {a}, {b}")

tasks = [e for e in events if e.get("cat") == "task"]
epochs = collections.Counter(e["args"]["epoch"] for e in tasks)
if set(epochs) != set(range(first, last + 1)):
    wrong(f"tasks of the epochs {sorted(epochs)}")
plain = {epochs[e] for e in epochs if e not in scored}
evaluated = {epochs[e] for e in epochs if e in scored}
if len(plain) > 1 or len(evaluated) > 1 or plain and evaluated and min(evaluated) <= max(plain):
    wrong(f"epochs of other numbers of tasks: {epochs}")
for name in ("gemm", "spmm"):
    if not any(name in e["name"] for e in tasks):
        wrong(f"no task {name}")

# An arrow begins and ends within a span of its track, which is half open.
begins = {track: [ns(e["ts"]) for e in of] for track, of in spans.items()}
for e in events:
    if e["ph"] in "sf":
        track, at = (e["pid"], e["tid"]), ns(e["ts"])
        place = bisect.bisect_right(begins.get(track, []), at) - 1
        if place < 0 or at >= begins[track][place] + max(ns(spans[track][place]["dur"]), 1):
            wrong(f"an arrow outside of spans: {e}")

bytes_of = {}  # by arrow: of its span, the event before it
for span, e in zip(events, events[1:]):
    if e["ph"] in "sf":
        if (e["ph"], e["id"]) in bytes_of:
            wrong(f"two arrows {e}")
        bytes_of[e["ph"], e["id"]] = span["args"]["bytes"]
starts = {e["id"]: e for e in events if e["ph"] == "s"}
ends = {e["id"]: e for e in events if e["ph"] == "f"}
for number, e in ends.items():
    s = starts.get(number)
    if s and (s["ts"] > e["ts"] or s["pid"] == e["pid"]):
        wrong(f"an arrow from {s} to {e}")
    if s and bytes_of["s", number] != bytes_of["f", number]:
        wrong(f"an arrow of {bytes_of['s', number]} and {bytes_of['f', number]} bytes: {e}")
met = set(starts) & set(ends)
received = [e for e in events if e.get("cat") == "message" and e["name"] == "received"]
if ranks > 1 and len(met) < 0.8 * len(ends):
    wrong(f"{len(met)} arrows of {len(starts)} sent and {len(ends)} received messages")
if ranks > 1 and not scored & set(epochs):  # evaluations have messages, too
    of_epoch = sum(lines[-1]["traffic_per_epoch"]["bytes_received"])
    taken = sum(e["args"]["bytes"] for e in received) / len(epochs)
    if not 0.75 * of_epoch <= taken <= 1.25 * of_epoch:
        wrong(f"{taken} bytes received in an epoch, {of_epoch} in the log")
print(f"{len(tasks)} tasks, {len(received)} messages")
