"""Makes calls of a command fail, one by one: memory, opening, writing, syncing, renaming and mapping.

    python3 faults.py STARLING SHIM KARATE [POINTS [MPIRUN [POINTS_ON_RANKS]]]

Of each command and kind, POINTS calls fail (default 12; 0: every one), once alone and once with all
later ones. Each time the command must end with status 1 or 2 and one sentence, or with status 0, the
files and the words of runs without a failure, and leave no temporary file. A file that was there
before is the old one then, or the new one; two files that belong together are both old or both new.
Times are not compared, nor what differs among three runs without a failure; all other numbers are,
such as losses. One line per command and kind.

With MPIRUN, commands then run on two ranks, of which one has the failures: POINTS_ON_RANKS of each
command and kind (default 5, twice as many of memory; 0: every one), in turn alone and with all
later ones.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

STARLING, SHIM, KARATE = (os.path.abspath(path) for path in sys.argv[1:4])
POINTS = int(sys.argv[4]) if len(sys.argv) > 4 else 12
MPIRUN = sys.argv[5] if len(sys.argv) > 5 else ""
POINTS_ON_RANKS = int(sys.argv[6]) if len(sys.argv) > 6 else 5
KINDS = ["memory", "open", "write", "sync", "rename", "map"]
SECONDS = 60
OLD = b"an older file"
ANY = object()  # a value that differs from run to run
MORE = "..."  # a member of contents whose other members differ from run to run
RESULTS = re.compile("accuracy|loss|f1|precision|recall|balance|factor")  # the same in each run
MEASURED = re.compile("second|time|date|memory|bytes_free|process|host|peak|rate|load|idle|handle|usage|/(ts|dur)$", re.I)

COMMANDS = {
    "train": "train KARATE --epochs 3 --workers 1 --checkpoint out.ckpt --log out.jsonl",
    "batches": "train KARATE --epochs 2 --workers 1 --batches co:2 --checkpoint out.ckpt --quiet",
    "sub-models": "train KARATE --epochs 4 --workers 1 --submodels 2 --store . --checkpoint out.ckpt --quiet",
    "resume": "train KARATE --workers 1 --resume model --epochs 6 --checkpoint out.ckpt --quiet",
    "trace": "train KARATE --epochs 2 --workers 1 --trace out.trace.json --quiet",
    "dag": "train KARATE --epochs 2 --workers 1 --dag out.svg --quiet",
    "convert": "convert edges.txt out",
    "convert npz": "convert KARATE out.npz",
    "convert tables": "convert tables out",
    "generate": "generate community out --vertices 60 --classes 3 --degree 4 --features 5 --seed 1",
    "predict": "predict model KARATE --workers 1 --output out.npy --table out.tsv",
    "predict ids": "predict named tables --workers 1 --output out.npy",
    "evaluate": "evaluate model KARATE --workers 1 --json out.json",
    "export": "export model --onnx out.onnx --checkpoint out.ckpt",
    "plan": "plan KARATE --ranks 4",
    "plan json": "plan KARATE --ranks 4 --json out.json",
    "info": "info KARATE",
    "info tables": "info tables",
    "partition": "partition KARATE --method libra --parts 3 --out out.npy",
    "report": "report model.jsonl --output out.html",
}
NEEDS = {"dag": "dot", "report": "gnuplot"}
PAIRS = {"partition": ("out.npy", "out.json"), "predict ids": ("out.npy", "out.ids.npy")}
ON_RANKS = ["train", "resume", "convert npz", "predict", "evaluate", "plan json", "partition"]


def prepare(folder):
    os.chdir(folder)
    subprocess.run([STARLING, "train", KARATE, "--epochs", "3", "--workers", "1", "--checkpoint", "model", "--log", "model.jsonl",
                    "--quiet"], check=True)
    with open("edges.txt", "w") as file:
        file.writelines(f"{v} {(v * 7 + 1) % 50}\n" for v in range(50))
    os.mkdir("tables")
    with open("tables/edges.csv", "w") as file:
        file.writelines(f"n{v},n{(v * 7 + 1) % 50}\n" for v in range(50))
    with open("tables/nodes.csv", "w") as file:
        file.write("id,label,f0\n")
        file.writelines(f"n{v},c{v % 3},{v * 0.5}\n" for v in range(50))
    subprocess.run([STARLING, "train", "tables", "--split", "60/20/20", "--epochs", "3", "--workers", "1", "--checkpoint", "named",
                    "--quiet"], check=True)
    with open("rank", "w") as file:  # one rank of two has the failures
        file.write('[ "$OMPI_COMM_WORLD_RANK" = "$FAULT_RANK" ] || unset FAULT_AT FAULT_COUNT\nLD_PRELOAD=$FAULT_SHIM exec "$@"\n')


def clean():
    for name in os.listdir("."):
        if name.startswith("out") or ".tmp" in name or name.startswith("starling-"):
            (shutil.rmtree if os.path.isdir(name) else os.unlink)(name)


# ---- What a command wrote and said ----


def leaves(value, place=""):
    """The values of a document, by their places in it."""
    found = {place: type(value).__name__}
    if isinstance(value, dict):
        for key in value:
            found.update(leaves(value[key], f"{place}/{key}"))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            found.update(leaves(item, f"{place}/{k}"))
    else:
        found[place] = ANY if MEASURED.search(place) and not RESULTS.search(place) else value
    return found


def contents(path):
    """A hash of the file; the values of a document or a log, whose times are none."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        if path.endswith(".json"):
            return leaves(json.loads(content))
        if path.endswith(".jsonl"):
            return leaves([json.loads(line) for line in content.splitlines()])
    except ValueError:
        pass
    return hashlib.sha1(content).hexdigest()


def is_time(lines, number, word):
    """Whether a word of a line is a time: a number before a unit, in a line of seconds, or below them in a table."""
    if not re.search("[0-9]", word.group()):
        return False
    if "seconds" in lines[number] or re.match(r" (s|ms|us)\b", lines[number][word.end():]):
        return True
    while number > 0 and lines[number - 1].strip():
        number -= 1
        if re.search(r"\bseconds$", lines[number][:word.end()]) and lines[number][word.end():word.end() + 1] in ("", " "):
            return True
    return False


def words_of(text):
    """The words that a command printed, by line and place."""
    lines = text.splitlines()
    return {f"{number}/{k}": ANY if is_time(lines, number, word) else word.group()
            for number, line in enumerate(lines) for k, word in enumerate(re.finditer(r"\S+", line))}


def results(said):
    """All that a command made, by file; its words are those of the file ''."""
    found = {"": words_of(said)}
    for folder, _, names in os.walk("."):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name))
            if path.startswith("out"):
                found[path] = contents(path)
    return found


def alike(wanted, found):
    """Whether contents are as wanted, where these are known; with MORE, other members may be there, too."""
    if wanted is ANY or not isinstance(wanted, dict):
        return wanted is ANY or wanted == found
    if not isinstance(found, dict) or not (MORE in wanted or wanted.keys() == found.keys()):
        return False
    return all(value is ANY or (key in found and value == found[key]) for key, value in wanted.items())


def common(one, other):
    """What two contents have in common."""
    if alike(one, other):
        return one
    if not isinstance(one, dict) or not isinstance(other, dict):
        return ANY
    both = {key: one[key] if one[key] == other[key] else ANY for key in one.keys() & other.keys()}
    return both if one.keys() == other.keys() else dict(both, **{MORE: ANY})


def leads(wanted, found):
    """Whether a log holds the first events of the wanted one: the run ended before the others."""
    if wanted is ANY or not isinstance(found, dict):
        return wanted is ANY
    events = 1 + max((int(place.split("/")[1]) for place in found if place), default=-1)
    return alike({place: value for place, value in wanted.items() if not place or int(place.split("/")[1]) < events}, found)


def check_comparison():
    """Ends the script unless another loss is seen, in words and in a log, and another time is not."""
    said = "3 epochs\n  loss   {0}\n  seconds per epoch  {1} (median)\n\n  parts  factor  seconds\n      3   {0}    {1}\nread in {1} s\n"
    log = '{{"loss": {0}, "lr": {0}, "epoch_seconds_median": {1}, "traceEvents": [{{"ts": {1}, "dur": {1}}}]}}'
    good, late, worse = ("0.6720", "0.010"), ("0.6720", "0.025"), ("0.6721", "0.010")
    for make in (lambda case: words_of(said.format(*case)), lambda case: leaves(json.loads(log.format(*case)))):
        if not alike(make(good), make(late)) or sum(make(good)[key] != value for key, value in make(worse).items()) != 2:
            sys.exit("FAIL  the comparison of results: a time counts, or a loss does not")


def put_old_files(wanted):
    for path in wanted:
        if path and os.path.dirname(path) == "":
            with open(path, "wb") as file:
                file.write(OLD)


def state(path, wanted):
    """Whether a file is the old one, the new one, or damaged."""
    if not os.path.exists(path):
        return "missing"
    found = contents(path)
    good = leads(wanted, found) if path.endswith(".jsonl") else alike(wanted, found)
    return "old" if found == hashlib.sha1(OLD).hexdigest() else "new" if good else "damaged"


def damaged(command, wanted):
    """Files of the command that are neither old nor new, and pairs of an old and a new one."""
    states = {path: state(path, wanted[path]) for path in wanted if path}
    whole = {path: states[path] for path in states if os.path.dirname(path) == ""}  # a folder may be missing
    bad = [path for path in states if states[path] == "damaged"] + [path for path in whole if whole[path] == "missing"]
    if command in PAIRS and len({states[path] for path in PAIRS[command]}) > 1:
        bad += [f"{path} is {states[path]}" for path in PAIRS[command]]
    return bad


# ---- Runs ----


def run(command, kind, at, later, wanted=(), rank=None):
    clean()
    put_old_files(wanted)
    environment = dict(os.environ, FAULT_KIND=kind, FAULT_AT=str(at), FAULT_COUNT="count", TMPDIR=os.getcwd())
    arguments = [STARLING] + [KARATE if word == "KARATE" else word for word in COMMANDS[command].split()]
    if later:
        environment["FAULT_ON"] = "yes"
    if rank is None:
        environment["LD_PRELOAD"] = SHIM
    else:
        environment.update(FAULT_SHIM=SHIM, FAULT_RANK=str(rank), TMPDIR="/tmp")
        arguments = [MPIRUN, "-n", "2", "sh", "rank"] + arguments
    if os.path.exists("count"):
        os.unlink("count")
    process = subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        said, words = process.communicate(timeout=SECONDS)
        return process.returncode, said.decode(errors="replace"), words.decode(errors="replace")
    except subprocess.TimeoutExpired:
        process.terminate()  # a launcher ends its ranks
        process.communicate()
        return "hang", "", ""


def judge(command, status, said, words, wanted, ranks):
    """What is wrong with a run, or None."""
    if status == "hang":
        return f"hangs for {SECONDS} s"
    sentences = [line for line in words.splitlines() if line.startswith("starling: ")]
    left = [name for name in os.listdir(".") if ".tmp" in name]
    if status < 0 or status >= 128:
        return f"signal {-status if status < 0 else status - 128}: {sentences}"
    if left:
        return f"status {status} leaves {left}"
    if status == 0:
        found = results(said)
        other = [path or "words" for path in sorted(wanted.keys() | found.keys())
                 if path not in found or path not in wanted or not alike(wanted[path], found[path])]
        return f"status 0, and others: {other}, {sentences}" if other else None
    if (status not in (1, 2) and not ranks) or not sentences:
        return f"status {status}, and {words!r}"
    bad = damaged(command, wanted)
    if "out.jsonl: lines are missing" in words or "no memory for a part of the results" in words:  # of a log, too
        bad = [path for path in bad if path != "out.jsonl"]
    return f"status {status}, and damaged files: {bad}" if bad else None


def points(calls, most):
    if most == 0 or calls <= most:
        return list(range(1, calls + 1))
    return [1 + calls // 2] if most == 1 else sorted({1 + k * (calls - 1) // (most - 1) for k in range(most)})


def references(command, ranks):
    """The common results of three runs without a failure; a sentence where a run fails."""
    wanted = None
    for _ in range(3):
        status, said, words = run(command, "none", 0, False, (), None if ranks == 1 else 0)
        if status != 0:
            return f"status {status} without a failure: {words}"
        found = results(said)
        wanted = {path: common(wanted[path], found.get(path)) for path in wanted} if wanted else found
    if ranks > 1:
        wanted[""] = ANY  # words of two ranks come in any order
    return wanted


def count_calls(command, kind, rank):
    run(command, kind, 0, False, (), rank)
    with open("count") as file:
        return int(file.read())


def cases(command, kind, ranks):
    """How many calls there are; which of them fail, whether later ones do, and on which rank."""
    if ranks == 1:
        calls = count_calls(command, kind, None)
        return calls, [(at, later, None) for at in points(calls, POINTS) for later in (False, True)]
    calls = [count_calls(command, kind, rank) for rank in (0, 1)]
    most = 2 * POINTS_ON_RANKS if kind == "memory" else POINTS_ON_RANKS  # memory has the most calls
    share = [most // 2, (most + 1) // 2] if min(calls) > 0 else [most] * 2
    some = [(at, rank) for rank in (0, 1) if share[rank] > 0 or most == 0 for at in points(calls[rank], share[rank])]
    return sum(calls), [(at, k % 2 == 1, rank) for k, (at, rank) in enumerate(some)]


def sweep(command, kind, wanted, ranks):
    """Prints a line, and returns whether nothing was wrong."""
    name = command if ranks == 1 else f"{command} on two ranks"
    calls, all_cases = cases(command, kind, ranks)
    wrong, tried = [], 0
    for at, later, rank in all_cases:
        status, said, words = run(command, kind, at, later, wanted, rank)
        fault = judge(command, status, said, words, wanted, ranks > 1)
        tried += 1
        if fault:
            wrong.append(f"          {kind} {at}{' and later' if later else ''}{f' of rank {rank}' if ranks > 1 else ''}: {fault}")
    print(f"{'FAIL' if wrong else 'ok  '}  {name}: {kind}, {tried} failures of {calls} calls, {len(wrong)} wrong")
    print("\n".join(wrong[:10]) + "\n" if wrong else "", end="", flush=True)
    return not wrong


def sweep_all(command, kinds, ranks=1):
    """Sweeps the kinds, and returns whether nothing was wrong."""
    if command in NEEDS and not shutil.which(NEEDS[command]):
        print(f"skip  {command}: no {NEEDS[command]}")
        return True
    wanted = references(command, ranks) if kinds else {}
    if isinstance(wanted, str):
        print(f"FAIL  {command}: {wanted}")
        return False
    return all([sweep(command, kind, wanted, ranks) for kind in kinds])


def asked(name):
    """The words of a variable of the environment."""
    return os.environ[name].split(",") if os.environ.get(name) else []


check_comparison()
with tempfile.TemporaryDirectory(prefix="starling-faults-") as place:
    prepare(place)
    only = asked("FAULTS_ONLY")
    good = [sweep_all(command, [kind for kind in KINDS if not only or command in only or kind in only]) for command in COMMANDS]
    if MPIRUN:
        good += [sweep_all(command, KINDS, ranks=2) for command in asked("FAULTS_ON_RANKS") or ON_RANKS]
sys.exit(0 if all(good) else 1)
