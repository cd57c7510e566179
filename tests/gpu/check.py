"""Checks Fluid on the first GPU of a machine where nothing is installed but CUDA's pip packages.

    python check.py [--only STAGE,...] [--programs NAME,...] [--out DIR]

Runs from the bundle that `scripts/bundle --tests` makes, or beside a build (--build DIR). Stages:
devices, tests (test_gpu), programs (fluidrun on both places), sanitizer (compute-sanitizer's memcheck
and racecheck of some tests), bench (gpu_bench.py, where PyTorch is installed). What each printed is in
DIR/STAGE.log, its figures in DIR/STAGE.json. Prints one line a check and exits with 1 when one failed.
"""

import argparse
import glob
import importlib.util
import json
import os
import re
import shutil
import site
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ARENA = re.compile(r"^ +arena +([0-9.]+ [KMG]?i?B)", re.MULTILINE)
PROGRAMS = {  # flags of a few steps
    "linear_regression": ["--data", "synthetic-linear?n=100000", "--batch", "10000"],
    "mnist_fluid": ["--data", "digits?limit=2000", "--batch", "100"],
    "mnist_cnn": ["--data", "digits?limit=1280", "--batch", "128"],
}
SANITIZED = "GpuOps.*:*RepeatsBitForBit*"


def library_folders(build):
    """Where pip puts the CUDA libraries, and what the bundle brings."""
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    cuda = [folder for p in packages for folder in glob.glob(os.path.join(p, "nvidia", "*", "lib"))]
    return [os.path.join(build, "lib"), *cuda, *os.environ.get("LD_LIBRARY_PATH", "").split(":")]


class Checks:
    def __init__(self, args):
        self.build, self.out, self.failed = args.build, args.out, []
        self.wanted = args.programs.split(",")
        self.env = os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, library_folders(args.build)))}
        os.makedirs(self.out, exist_ok=True)

    def run(self, stage, command, timeout, **settings):
        """Whether it went well, and what it printed, which goes to the stage's log too."""
        command = [c if os.path.isabs(c) or i > 0 else os.path.join(self.build, c) for i, c in enumerate(command)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=self.env | settings,
                                  timeout=timeout)
            code, text = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as late:
            code, text = 124, (late.stdout or b"").decode() + f"\nstopped after {timeout} s\n"
        with open(os.path.join(self.out, stage + ".log"), "a") as log:
            log.write(f"$ {' '.join(command)}\n{text}\nexit code {code}\n")
        return code == 0, text

    def say(self, name, good, detail=""):
        print(f"{'ok  ' if good else 'FAIL'} {name}{': ' if detail else ''}{detail}", flush=True)
        if not good:
            self.failed.append(name)

    def devices(self):
        good, text = self.run("devices", ["fluidrun", "devices"], 60)
        self.say("a GPU is listed", good and "cuda:0" in text, text.strip())
        _, described = self.run("devices", ["fluidrun", "devices", "--json"], 60)
        with open(os.path.join(self.out, "devices.json"), "w") as f:
            f.write(described)

    def tests(self):
        figures = os.path.join(self.out, "tests.json")
        good, text = self.run("tests", ["test_gpu", f"--gtest_output=json:{figures}"], 1500)
        summary = [line for line in text.splitlines() if re.match(r"\[  (PASSED|FAILED|SKIPPED) ", line)]
        self.say("test_gpu", good and "SKIPPED" not in text, "; ".join(summary))

    def losses(self, program, flags, place):
        log = os.path.join(self.out, f"{program}.{place.replace(':', '')}.log.json")
        if os.path.exists(log):
            os.remove(log)
        good, text = self.run("programs", ["fluidrun", "train", program, *flags, "--max-steps", "10", "--dtype", "f64",
                                           "--place", place, "--log-json", log], 300)
        if not good:
            return None, text.strip().splitlines()[-1]
        with open(log) as f:
            return [json.loads(line)["loss"] for line in f], ""

    def programs(self):
        target = os.path.join(self.out, "devices.json")
        for program in self.wanted:
            flags = PROGRAMS[program]
            gpu, why = self.losses(program, flags, "cuda:0")
            cpu, why_cpu = self.losses(program, flags, "cpu")
            near = gpu and cpu and len(gpu) == len(cpu) and all(abs(a - b) <= 1e-9 * abs(b) for a, b in zip(gpu, cpu))
            self.say(f"{program} trains in f64 as on the CPU", bool(near), why or why_cpu)
            batch = flags[flags.index("--batch") + 1]
            plan = ["fluidrun", "plan", program, "--batch", batch, "--place", "cuda:0"]
            here = ARENA.search(self.run("programs", plan, 60)[1])
            elsewhere = self.run("programs", [*plan, "--target", target], 60, FLUID_GPU_LIBRARY="/nowhere")[1]
            there = ARENA.search(elsewhere)
            self.say(f"{program} is planned alike without the GPU",
                     bool(here and there and here.group(1) == there.group(1)), here.group(1) if here else "")

    def sanitizer(self):
        tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.path.exists(tool):
            return self.say("compute-sanitizer", False, "it is not installed")
        for check in ("memcheck", "racecheck"):
            good, text = self.run("sanitizer", [tool, "--tool", check, "--error-exitcode", "9",
                                                os.path.join(self.build, "test_gpu"),
                                                f"--gtest_filter={SANITIZED}"], 1200)
            self.say(check, good, " ".join(re.findall(r"(?:ERROR|RACECHECK) SUMMARY.*", text)))

    def bench(self):
        if importlib.util.find_spec("torch") is None:
            return self.say("bench", False, "PyTorch is not installed")
        script = next(p for p in (os.path.join(HERE, "gpu_bench.py"), os.path.join(HERE, "../bench/gpu_bench.py"))
                      if os.path.exists(p))
        good, text = self.run("bench", [sys.executable, script, self.build, sys.executable,
                                        "--out", os.path.join(self.out, "bench.json")], 1500)
        print(text)
        self.say("bench", good)


def main():
    stages = ["devices", "tests", "programs", "sanitizer", "bench"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(stages))
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="of the stage of that name")
    parser.add_argument("--out", default="gpu_check")
    parser.add_argument("--build", default=HERE)
    args = parser.parse_args()
    args.build, args.out = os.path.abspath(args.build), os.path.abspath(args.out)
    wanted = args.only.split(",")
    if set(wanted) - set(stages):
        parser.error(f"there are the stages {', '.join(stages)}")
    checks = Checks(args)
    for stage in wanted:
        getattr(checks, stage)()
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
