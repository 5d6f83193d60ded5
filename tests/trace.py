# Whether a file of --trace is what it says: trace.py FILE LOG FIRST LAST RANKS
import collections
import json
import sys

path, log, first, last, ranks = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
events = json.load(open(path))["traceEvents"]
lines = [json.loads(line) for line in open(log)]
scored = {e["epoch"] for e in lines if e["event"] == "epoch" and "val_accuracy" in e}


def wrong(text):
    sys.exit(text)


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
        if a["ts"] + a["dur"] > b["ts"] + 2e-3:
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
