"""Makes calls of a command fail, one by one: memory, opening, writing, syncing, renaming and mapping.

    python3 faults.py STARLING SHIM KARATE [POINTS]

Of each command and kind, POINTS calls fail (default 12; 0: every one), once alone and once with all
later ones. Each time the command must end with status 1 or 2 and one sentence, or with status 0 and
the files of a run without a failure, and leave no temporary file. A file that was there before is
the old one then, or the new one. One line per command and kind.
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

STARLING, SHIM, KARATE = (os.path.abspath(path) for path in sys.argv[1:4])
POINTS = int(sys.argv[4]) if len(sys.argv) > 4 else 12
KINDS = ["memory", "open", "write", "sync", "rename", "map"]
SECONDS = 60
OLD = b"an older file"

COMMANDS = {
    "train": ["train", "KARATE", "--epochs", "3", "--workers", "1", "--checkpoint", "out.ckpt", "--log", "out.jsonl"],
    "batches": ["train", "KARATE", "--epochs", "2", "--workers", "1", "--batches", "co:2", "--checkpoint", "out.ckpt", "--quiet"],
    "sub-models": ["train", "KARATE", "--epochs", "4", "--workers", "1", "--submodels", "2", "--store", ".", "--checkpoint", "out.ckpt",
                   "--quiet"],
    "resume": ["train", "KARATE", "--workers", "1", "--resume", "model", "--epochs", "6", "--checkpoint", "out.ckpt", "--quiet"],
    "convert": ["convert", "edges.txt", "out"],
    "convert npz": ["convert", "KARATE", "out.npz"],
    "convert tables": ["convert", "tables", "out"],
    "predict": ["predict", "model", "KARATE", "--workers", "1", "--output", "out.npy", "--table", "out.tsv"],
    "evaluate": ["evaluate", "model", "KARATE", "--workers", "1", "--json", "out.json"],
    "export": ["export", "model", "--onnx", "out.onnx", "--checkpoint", "out.ckpt"],
    "plan": ["plan", "KARATE", "--ranks", "4", "--json", "out.json"],
    "info": ["info", "KARATE"],
    "partition": ["partition", "KARATE", "--method", "libra", "--parts", "3", "--out", "out.npy"],
}


def prepare(folder):
    os.chdir(folder)
    subprocess.run([STARLING, "train", KARATE, "--epochs", "3", "--workers", "1", "--checkpoint", "model", "--quiet"], check=True)
    with open("edges.txt", "w") as file:
        file.writelines(f"{v} {(v * 7 + 1) % 50}\n" for v in range(50))
    os.mkdir("tables")
    with open("tables/edges.csv", "w") as file:
        file.writelines(f"n{v},n{(v * 7 + 1) % 50}\n" for v in range(50))
    with open("tables/nodes.csv", "w") as file:
        file.write("id,label,f0\n")
        file.writelines(f"n{v},c{v % 3},{v * 0.5}\n" for v in range(50))


def clean():
    for name in os.listdir("."):
        if name.startswith("out") or ".tmp" in name or name.startswith("starling-"):
            (shutil.rmtree if os.path.isdir(name) else os.unlink)(name)


def written():
    """Hashes of what a command writes, but for logs and documents, which have times."""
    found = {}
    for folder, _, names in os.walk("."):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name))
            if path.startswith("out") and not path.endswith((".jsonl", ".json")):
                found[path] = hashlib.sha1(open(path, "rb").read()).hexdigest()
            elif path.endswith(".json") and path.startswith("out."):
                found[path] = document(path)
    return found


def document(path):
    """The members of a JSON file, whose numbers have times; its bytes, where it is none."""
    content = open(path, "rb").read()
    try:
        return sorted(json.loads(content))
    except ValueError:
        return hashlib.sha1(content).hexdigest()


def put_old_files(wanted):
    for path in wanted:
        if os.path.dirname(path) == "":
            with open(path, "wb") as file:
                file.write(OLD)


def damaged(wanted):
    """Files of the command that are neither the old ones nor the new ones."""
    old = hashlib.sha1(OLD).hexdigest()
    return [path for path, found in written().items() if path in wanted and found not in (old, wanted[path])]


def run(command, kind, at, later, wanted=()):
    clean()
    put_old_files(wanted)
    environment = dict(os.environ, LD_PRELOAD=SHIM, FAULT_KIND=kind, FAULT_AT=str(at), FAULT_COUNT="count", TMPDIR=os.getcwd())
    if later:
        environment["FAULT_ON"] = "yes"
    arguments = [KARATE if word == "KARATE" else word for word in COMMANDS[command]]
    if os.path.exists("count"):
        os.unlink("count")
    try:
        done = subprocess.run([STARLING] + arguments, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        return done.returncode, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return "hang", ""


def judge(status, words, wanted):
    """What is wrong with a run, or None."""
    if status == "hang":
        return f"hangs for {SECONDS} s"
    sentences = [line for line in words.splitlines() if line.startswith("starling: ")]
    left = [name for name in os.listdir(".") if ".tmp" in name]
    if status < 0:
        return f"signal {-status}: {sentences}"
    if left:
        return f"status {status} leaves {left}"
    if status == 0:
        return None if written() == wanted else f"status 0, and other files: {sorted(written())}, {sentences}"
    if status not in (1, 2) or not sentences:
        return f"status {status}, and {words!r}"
    return f"status {status}, and damaged files: {damaged(wanted)}" if damaged(wanted) else None


def points(calls):
    if POINTS == 0 or calls <= POINTS:
        return range(1, calls + 1)
    return sorted({1 + k * (calls - 1) // (POINTS - 1) for k in range(POINTS)})


def sweep(command, kind):
    """Prints a line, and returns whether nothing was wrong."""
    status, words = run(command, kind, 0, False)
    if status != 0:
        print(f"FAIL  {command}: status {status} without a failure: {words}")
        return False
    calls, wanted, wrong, tried = int(open("count").read()), written(), [], 0
    for at in points(calls):
        for later in (False, True):
            status, words = run(command, kind, at, later, wanted)
            fault = judge(status, words, wanted)
            tried += 1
            if fault:
                wrong.append(f"          {kind} {at}{' and later' if later else ''}: {fault}")
    print(f"{'FAIL' if wrong else 'ok  '}  {command}: {kind}, {tried} failures of {calls} calls, {len(wrong)} wrong")
    print("\n".join(wrong[:10]) + "\n" if wrong else "", end="", flush=True)
    return not wrong


with tempfile.TemporaryDirectory(prefix="starling-faults-") as place:
    prepare(place)
    only = os.environ.get("FAULTS_ONLY", "").split(",") if os.environ.get("FAULTS_ONLY") else []
    good = [sweep(command, kind) for command in COMMANDS for kind in KINDS if not only or command in only or kind in only]
sys.exit(0 if all(good) else 1)
