# Whether a page of starling report has the figures and numbers of logs: report.py PAGE TITLES LOG ...
import html.parser
import json
import sys

path, titles, logs = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]


def wrong(text):
    sys.exit(text)


class Page(html.parser.HTMLParser):
    void = {"meta", "link", "br", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.titles, self.drawn, self.rows, self.matrices = [], [], [], [], []
        self.ids, self.regions, self.keys = [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        for name, value in attrs.items():
            if name in ("src", "href", "xlink:href") and not value.startswith(("#", "data:")):
                wrong(f"a page that needs {value}")
        if tag == "script":
            wrong("a script")
        if tag == "figure":
            self.drawn.append(0)
            self.keys.append([])
        if tag == "div" and attrs.get("role") == "img" and not attrs.get("aria-label"):
            wrong("a figure without a label")
        self.shape(tag, attrs)
        self.ids.append(attrs.get("id"))
        if attrs.get("role") == "region":
            self.regions.append(attrs.get("aria-label"))
        if tag == "table":
            self.rows.append([])
        if tag == "tr":
            self.rows[-1].append([])
        if tag in ("td", "th"):
            self.rows[-1][-1].append("")
        if tag not in self.void:
            self.open.append(tag)

    def shape(self, tag, attrs):
        """Axes are grey or black; what is drawn has a colour. Points of lines and areas count."""
        paint = attrs.get("stroke", "") + attrs.get("fill", "")
        grey = "128, 128, 128" in paint
        if tag in ("path", "polygon") and "svg" in self.open and "rgb" in paint and not grey:
            self.drawn[-1] += attrs.get("d", attrs.get("points", "")).count(",")

    def handle_startendtag(self, tag, attrs):
        self.shape(tag, dict(attrs))
        self.ids.append(dict(attrs).get("id"))

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            wrong(f"a stray </{tag}>")

    def handle_data(self, data):
        if self.open and self.open[-1] == "h3":
            self.titles.append(data)
        if self.open and self.open[-1] == "li":
            self.keys[-1].append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1][-1] += data


page = Page()
page.feed(open(path, encoding="utf-8").read())
if page.open:
    wrong(f"open: {page.open}")
if page.titles != titles:
    wrong(f"figures {page.titles}")
if len(page.drawn) != len(titles) or min(page.drawn) < 4:
    wrong(f"points of figures: {page.drawn}")
ids = [i for i in page.ids if i]
if len(ids) != len(set(ids)) or len(page.regions) != len(set(page.regions)) or None in page.regions:
    wrong("an id or the label of a region is there twice")
splits = ["validation", "test", "training"]
if page.keys[1] != ([f"{s}, {log}" for log in logs for s in splits] if len(logs) > 1 else splits):
    wrong(f"keys of accuracies: {page.keys[1]}")
if page.keys[0] != (logs if len(logs) > 1 else []):
    wrong(f"keys of losses: {page.keys[0]}")
if "An epoch over time" in titles:
    trace = json.load(open("trace.json"))["traceEvents"]
    tasks = [e for e in trace if e.get("cat") == "task"]
    first = [e for e in tasks if e["args"]["epoch"] == tasks[0]["args"]["epoch"]]
    wanted = {e["name"] for e in first} | {"sent", "received"}
    if set(page.keys[titles.index("An epoch over time")]) != wanted:
        wrong("not the operations of the trace")
epochs = 0
for log in logs:
    names = [e["event"] for e in map(json.loads, open(log))]
    epochs += names[len(names) - names[::-1].index("start") :].count("epoch")
if page.drawn[titles.index("Loss")] < epochs:
    wrong(f"{page.drawn[titles.index('Loss')]} points of {epochs} epochs")
overview = {row[0]: row[1:] for row in page.rows[len(logs) > 1]}
if len(logs) > 1 and page.rows[0][0][0] != "run":
    wrong("no table of the options that differ")
if overview["run"] != logs:
    wrong(f"runs {overview['run']}")
matrices = [t for t in page.rows if t[0][0] == "class" and t[0][1] == "0"]
scores = [t for t in page.rows if t[0][0] == "class" and t[0][1] == "vertices"]
for k, log in enumerate(logs):
    events = [json.loads(line) for line in open(log)]
    start, end = [e for e in events if e["event"] == "start"][-1], events[-1]
    for title, value in (
        ("test accuracy", end["test_accuracy"]),
        ("validation accuracy", end["val_accuracy"]),
        ("loss", end["loss"]),
        ("seconds per epoch (median)", end["epoch_seconds_median"]),
        ("epochs", end["epochs"]),
        ("ranks", start["machine"]["ranks"]),
        ("vertices", start["graph"]["vertices"]),
    ):
        if abs(float(overview[title][k]) - value) > 1e-5 * abs(value):
            wrong(f"{title}: {overview[title][k]}, in the log {value}")
    counts = end["confusion"]["test"]
    if [[int(c) for c in row[1:]] for row in matrices[k][1:]] != counts:
        wrong("another confusion matrix")
    total, right = sum(map(sum, counts)), sum(row[c] for c, row in enumerate(counts))
    if abs(right / total - end["test_accuracy"]) > 1e-12:
        wrong(f"{right} of {total} right, accuracy {end['test_accuracy']}")
    for c, row in enumerate(scores[k][1:]):
        seen, said = sum(counts[c]), sum(r[c] for r in counts)
        want = [counts[c][c] / said if said else None, counts[c][c] / seen if seen else None]
        for text, value in zip(row[2:4], want):
            if text != (f"{value:.4f}" if value is not None else "–"):
                wrong(f"class {c}: {row}, expected {want}")
        if int(row[1]) != seen:
            wrong(f"class {c} has {row[1]} vertices, not {seen}")
