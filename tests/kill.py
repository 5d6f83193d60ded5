"""Kills commands with SIGKILL at random moments, and goes on.

    python3 kill.py STARLING KILLS [SEED [MPIRUN]]

Of each configuration in turn, a run is killed: its one process, any rank, or the launcher. All of its
processes must end within a minute. A checkpoint that is there must be readable, and the run goes on
from it, or starts anew. At the end tensors, losses and files are those of a run that nobody killed,
and no temporary file and no lock is left. Prints a line for each configuration. SEED repeats a list
of kills (their moments are shares of a run's time); K/SEED only its K-th kill.
"""
import hashlib
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

STARLING, KILLS = os.path.abspath(sys.argv[1]), int(sys.argv[2])
ONLY, SEED = re.fullmatch(r"(?:(\d+)/)?(\d+)", sys.argv[3] if len(sys.argv) > 3 else str(int(time.time()))).groups()
MPIRUN = sys.argv[4] if len(sys.argv) > 4 else ""
SECONDS = 60

TRAIN = "train GRAPH --workers 1 --tiles 6 --order none --hidden 16 --seed 3 --quiet --log log --checkpoint ck --epochs"
# Name: ranks and arguments.
CONFIGURATIONS = {
    "full": (1, f"{TRAIN} 300 --checkpoint-every 10"),
    "full, 3 ranks": (3, f"{TRAIN} 100 --checkpoint-every 10 --distribution 1d"),
    "delayed sums, 3 ranks": (3, f"{TRAIN} 60 --checkpoint-every 5 --distribution vertex-cut --delay cd-2"),
    "batches": (1, f"{TRAIN} 60 --checkpoint-every 5 --batches co:3"),
    "groups, 3 ranks": (3, f"{TRAIN} 60 --checkpoint-every 5 --groups 3x1"),
    "clusters": (1, f"{TRAIN} 60 --checkpoint-every 5 --batches clusters:6,2"),
    "resample": (1, f"{TRAIN} 60 --checkpoint-every 5 --batches co:3 --fanout 3 --resample 2"),
    "sub-models": (1, f"{TRAIN} 100 --checkpoint-every 10 --submodels 2 --local-steps 2"),
    "sub-models in files, 3 ranks": (3, f"{TRAIN} 60 --checkpoint-every 6 --submodels 3 --groups 3x1 --store ."),
    "bfloat16": (1, f"{TRAIN} 150 --checkpoint-every 10 --precision bf16"),
    "convert": (1, "convert GRAPH out --order rcm --quiet"),
    "convert npz": (1, "convert GRAPH out.npz --quiet"),
    "generate": (1, "generate community out --vertices 20000 --classes 4 --degree 10 --features 20 --seed 5"),
    "partition": (1, "partition GRAPH --method libra --parts 3 --out out.npy"),
}


def command(ranks, arguments, *more):
    words = [GRAPH if word == "GRAPH" else word for word in arguments.split()] + list(more)
    return ([MPIRUN, "-n", str(ranks)] if ranks > 1 else []) + [STARLING, *words]


def finish(ranks, arguments, *more):
    done = subprocess.run(command(ranks, arguments, *more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=10 * SECONDS)
    return done.returncode, done.stdout.strip()


def descendants(parent):
    """A process and those that it has started, parents first."""
    found = [parent]
    for process in found:
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/children") as file:
                    found += map(int, file.read().split())
        except OSError:
            pass  # it ended meanwhile
    return found


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def kill_one(ranks, arguments, share, seconds, choice):
    """Starts a run and kills one of its processes. Returns the status of the run, None where it hung, and whether it was killed."""
    with subprocess.Popen(command(ranks, arguments), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as run:
        time.sleep(share * seconds)
        family = descendants(run.pid)
        alive = run.poll() is None
        if alive:
            os.kill(family[choice % len(family)], signal.SIGKILL)
        try:
            status, late = run.wait(SECONDS), time.time() + SECONDS
        except subprocess.TimeoutExpired:
            status, late = None, 0
        while any(is_alive(process) for process in family) and time.time() < late:
            time.sleep(0.05)
        hung = [process for process in family if is_alive(process)]
        for process in hung:
            os.kill(process, signal.SIGKILL)
        return None if hung else status, alive


def tensors(path):
    with open(path, "rb") as file:
        header = struct.unpack("<Q", file.read(8))[0]
        file.seek(8 + header)
        return hashlib.sha256(file.read()).hexdigest()


def losses(path):
    """The loss of each epoch; an epoch that was done again counts once, and must have the same loss."""
    found = {}
    with open(path) as file:
        for line in file:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # a killed program may have cut it
            if event.get("event") == "epoch" and found.setdefault(event["epoch"], event["loss"]) != event["loss"]:
                found[event["epoch"]] = "two losses"
    return found


def result():
    """What a run has made: checkpoints by their tensors, logs by their losses, and all other files."""
    made = {}
    for folder, _, names in os.walk("."):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name))
            with open(path, "rb") as file:
                made[path] = (tensors(path) if name == "ck" else losses(path) if name == "log"
                              else hashlib.sha256(file.read()).hexdigest())
    return made


def enter(name):
    folder = os.path.join(PLACE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    os.chdir(folder)


def go_on(ranks, arguments):
    """Goes on after a kill. Returns what is wrong, or None, and whether there was a checkpoint."""
    if not os.path.exists("ck"):
        status, words = finish(ranks, arguments)
        if status == 2 and "out: exists and is not empty" in words:
            status = 0  # the folder was made
        return (f"started anew: status {status}: {words}" if status else None), False
    status, words = finish(1, "evaluate ck GRAPH --quiet")
    if status:
        return f"the checkpoint is not read: {words}", True
    status, words = finish(ranks, arguments, "--resume", "ck")
    done = status == 2 and "is done already" in words
    return (None if status == 0 or done else f"resumed: status {status}: {words}"), True


def try_one(name, wanted, seconds, share, choice):
    ranks, arguments = CONFIGURATIONS[name]
    enter("killed")
    status, killed = kill_one(ranks, arguments, share, seconds, choice)
    if status is None:
        return "processes were left after a minute", killed, False
    fault, resumed = (None, False) if status == 0 else go_on(ranks, arguments)
    made = result()
    if not fault and made != wanted:
        fault = "other results: " + ", ".join(sorted(set(made) ^ set(wanted)) or [path for path in made if made[path] != wanted[path]])
    return fault, killed, resumed


def main():
    names = [name for name in CONFIGURATIONS if MPIRUN or CONFIGURATIONS[name][0] == 1]
    random.seed(int(SEED))
    kills = [(name, random.uniform(0.05, 1.0), random.randrange(1 << 16))
             for name in random.sample(names, len(names)) * (KILLS // len(names) + 1)][:KILLS]
    print(f"seed {SEED}")
    failures = all_killed = 0
    for name in dict.fromkeys(name for name, _, _ in kills):
        enter("whole")
        began = time.time()
        status, words = finish(*CONFIGURATIONS[name])
        if status:
            sys.exit(f"FAIL  {name}: status {status} without a kill: {words}")
        seconds, wanted = time.time() - began, result()
        faults, tried, killed, resumed = [], 0, 0, 0
        for number, (one, share, choice) in enumerate(kills, 1):
            if one != name or (ONLY and int(ONLY) != number):
                continue
            fault, hit, had = try_one(name, wanted, seconds, share, choice)
            tried, killed, resumed = tried + 1, killed + hit, resumed + had
            faults += [f"          {number}/{SEED}: at {share:.3f} of {seconds:.2f} s: {fault}"] if fault else []
        print(f"{'FAIL' if faults else 'ok  '}  {name}: {tried} tries, {killed} killed, {resumed} resumed, {len(faults)} wrong", *faults, sep="\n", flush=True)
        failures += len(faults)
        all_killed += killed
    if all_killed == 0:
        sys.exit("FAIL  no run was killed: all had ended")
    return failures


with tempfile.TemporaryDirectory(prefix="starling-kill-") as PLACE:
    os.environ["TMPDIR"] = os.path.join(PLACE, "tmp")
    os.mkdir(os.environ["TMPDIR"])
    GRAPH = os.path.join(PLACE, "graph")
    subprocess.run([STARLING, "generate", "community", GRAPH, "--vertices", "300", "--classes", "4", "--degree", "6", "--features", "20",
                    "--seed", "3", "--quiet"], check=True)
    FAILURES = main()
    LEFT = [name for name in os.listdir(os.environ["TMPDIR"]) if "starling" in name]
    if LEFT:
        print("FAIL  left in TMPDIR:", *LEFT)
    os.chdir("/")
sys.exit(1 if FAILURES or LEFT else 0)
