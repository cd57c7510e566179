"""Checks Fluid on the first GPU of a machine where nothing is installed but CUDA's pip packages.

    python check.py [--stages STAGE,...] [--deadline SECONDS] [--filter TESTS] [--works WORK,...]

Runs from the bundle that `scripts/bundle --tests` makes, or beside a build (--build DIR). Stages, in
the order in which they run unless --stages says another:

    devices       what `fluidrun devices` says
    programs      three examples, 10 steps in f64 on both places; plans with and without the GPU
    gpu_tests     test_gpu, suite by suite (--filter, as GoogleTest's; --jobs at a time)
    trajectories  ResNet-18 and AlexNet (--networks), 50 steps (--steps) in f32 and in mixed precision, on
                  both places, on the GPU twice for the same bits; plans as above
    bench         gpu_bench.py (--works), by a Python that has PyTorch (--python)
    sanitizer     compute-sanitizer's memcheck and racecheck of some tests (--filter)

Prints one line a check; one that breaks has failed, and its traceback is in the stage's log. DIR (--out)
has a log of each stage, which grows while it runs, its figures as JSON, and summary.json; all of it is
packed into --pack, DIR.tar.gz, after every stage. What is not done when the deadline comes, or SIGINT,
SIGTERM or SIGHUP, is stopped, and listed. Exits with 1 when a check failed, with 2 when none did and
something is not done.
"""

import argparse
import os
import platform
import signal
import sys
import tarfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../bench"))

import gpu_bench
import stages
import trajectories
from json_file import write_json
from processes import Processes

LISTS = {"stages": stages.STAGES, "programs": stages.PROGRAMS, "networks": trajectories.NETWORKS, "modes": trajectories.MODES,
         "works": gpu_bench.WORKS}
NEEDED_GLIBC = os.path.join(HERE, "glibc_version")  # of the bundle


class Report:
    """What was found, on the terminal and in summary.json. Threads may share it."""

    def __init__(self, out):
        self.lock = threading.RLock()
        self.path = os.path.join(out, "summary.json")
        self.checks, self.not_done = [], []

    def say(self, name, good, detail=""):
        with self.lock:
            print(f"{'ok  ' if good else 'FAIL'} {name}{': ' if detail else ''}{detail}", flush=True)
            self.checks.append({"name": name, "good": bool(good), "detail": detail})
            self.write()

    def leave(self, name):
        with self.lock:
            print(f"NOT DONE {name}", flush=True)
            self.not_done.append(name)
            self.write()

    def write(self):
        write_json({"checks": self.checks, "not_done": self.not_done}, self.path)

    def exit_code(self):
        if not all(check["good"] for check in self.checks):
            return 1
        return 2 if self.not_done else 0


def pack(folder, path):
    with tarfile.open(path + ".temporary", "w:gz") as tar:
        tar.add(folder, os.path.basename(folder))
    os.replace(path + ".temporary", path)


def lacking_glibc():
    """What is wrong with the machine's C library, which programs of the bundle need: "" if nothing."""
    if not os.path.exists(NEEDED_GLIBC):
        return ""
    with open(NEEDED_GLIBC, encoding="utf-8") as f:
        needed = f.read().strip()
    library, version = platform.libc_ver()
    numbers = [[int(n) for n in v.split(".")] for v in (version or "0", needed)]
    if library == "glibc" and numbers[0] >= numbers[1]:
        return ""
    return f"the programs need glibc {needed} or newer, and this machine has {library or 'another C library'} {version}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", default=",".join(stages.STAGES))
    parser.add_argument("--deadline", type=float, default=float("inf"), help="seconds from now")
    parser.add_argument("--filter", help="of the tests of gpu_tests and sanitizer")
    parser.add_argument("--jobs", type=int, default=1, help="processes of gpu_tests at a time")
    parser.add_argument("--works", default=",".join(gpu_bench.WORKS), help="of bench")
    parser.add_argument("--python", default=sys.executable, help="which has PyTorch, for bench")
    parser.add_argument("--rounds", type=int, default=5, help="of bench")
    parser.add_argument("--peer-caches", help="of bench: see gpu_bench.py")
    parser.add_argument("--programs", default=",".join(stages.PROGRAMS), help="of the stage of that name")
    parser.add_argument("--networks", default=",".join(trajectories.LARGE), help="of trajectories")
    parser.add_argument("--modes", default=",".join(trajectories.MODES), help="of trajectories")
    parser.add_argument("--steps", type=int, default=trajectories.STEPS, help="of trajectories")
    parser.add_argument("--out", default="gpu_check")
    parser.add_argument("--pack", help="DIR.tar.gz, if not said")
    parser.add_argument("--build", default=HERE)
    args = parser.parse_args()
    for option, known in LISTS.items():
        chosen = getattr(args, option).split(",")
        if unknown := set(chosen) - set(known):
            parser.error(f"--{option}: no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        setattr(args, option, chosen)
    args.build, args.out = os.path.abspath(args.build), os.path.abspath(args.out)
    args.pack = os.path.abspath(args.pack or args.out + ".tar.gz")
    for option, folder in (("out", args.out), ("pack", os.path.dirname(args.pack))):
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            parser.error(f"--{option}: {error}")
    return args


def main():
    begin = time.monotonic()
    args = arguments()
    processes = Processes(args.out, begin + args.deadline)
    report = Report(args.out)
    for stops in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(stops) != signal.SIG_IGN:  # as nohup has it
            signal.signal(stops, lambda *_: setattr(processes, "deadline", 0))
    if why := lacking_glibc():
        report.say("glibc", False, why)
        pack(args.out, args.pack)
        return 1
    checks = stages.Stages(args, processes, report)
    for stage in args.stages:
        try:
            checks.run(stage)
        finally:
            pack(args.out, args.pack)
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
