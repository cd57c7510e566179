"""The stages of check.py: what each runs, and what it expects."""

import collections
import concurrent.futures
import filecmp
import json
import os
import re
import sys
import tempfile
import threading
import traceback

import gpu_bench
import gpu_results
import gtest_runs
import sanitizer
import trajectories
from cuda_folders import with_cuda
from json_file import write_json
from processes import OutOfTime

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {  # flags of a few steps; the batch divides the samples, so that one size is all there is
    "linear_regression": ["--data", "synthetic-linear?n=100000", "--batch", "10000"],
    "mnist_fluid": ["--data", "digits?limit=2000", "--batch", "100"],
    "mnist_cnn": ["--data", "digits?limit=1280", "--batch", "128"],
}
PLANNED_BY = ("--batch", "--dtype", "--amp", "--amp-dtype")  # flags of training that its memory depends on
PROGRAMS_STEPS = 10
STEPS_SECONDS = 600  # of one process that trains
BENCH_ENDS_SECONDS = 20  # what is running may end in these
BENCH_GIVES_UP_SECONDS = 60  # before the deadline, these and what the sides of a work want to measure
ARENA_OF_TRAINING = re.compile(r"arena [^;]*\((\d+) bytes\)")


class Stages:
    def __init__(self, args, processes, report):
        self.args, self.processes, self.report = args, processes, report
        self.cuda = with_cuda(os.environ)

    def program(self, name):
        return os.path.join(self.args.build, name)

    def file(self, name):
        return os.path.join(self.args.out, name)

    def fluidrun(self, stage, *command, limit=STEPS_SECONDS, **settings):
        return self.processes.run(stage, [self.program("fluidrun"), *command], limit, environment=self.cuda | settings)

    def run(self, stage):
        try:
            if self.processes.left() <= 0:
                raise OutOfTime()
            self.guarded(stage, stage, STAGES[stage], self)
        except OutOfTime:
            self.report.leave(stage)

    def guarded(self, stage, name, work, *given):
        """work(*given): what it raises, but for OutOfTime, is a check that failed, and in the log."""
        try:
            work(*given)
        except OutOfTime:
            raise
        except Exception as error:
            self.report.say(name, False, f"{type(error).__name__}: {error}")
            self.processes.note(stage, traceback.format_exc())

    def each(self, stage, items, work):
        """work(item) for all of them, and when the deadline comes the names of those that are left."""
        items = list(items)
        for i, item in enumerate(items):
            try:
                self.guarded(stage, f"{stage} {item}", work, item)
            except OutOfTime:
                for left in items[i:]:
                    self.report.leave(f"{stage} {left}")
                return

    def describe(self):
        """Writes devices.json, which tells of the GPU who does not see it."""
        described = self.fluidrun("devices", "devices", "--json", limit=120)
        with open(self.file("devices.json"), "w", encoding="utf-8") as f:
            f.write(described.stdout)
        return described

    def devices(self):
        listed = self.fluidrun("devices", "devices", limit=120)
        described = self.describe()
        problem = first_gpus_problem(described.stdout) if described.good else described.last_line
        said = listed.stdout.strip() if listed.good else listed.last_line
        self.report.say("cuda:0 can be used", listed.good and not problem, "; ".join(filter(None, [problem, said])))

    def losses(self, stage, name, program, place, flags, steps):
        """Of each of `steps` steps, in the file NAME.json too, and what was printed; None, and why, where
        that failed."""
        log = self.file(name.replace(" ", "_").replace(":", "") + ".json")
        if os.path.exists(log):
            os.remove(log)
        done = self.fluidrun(stage, "train", program, *flags, "--max-steps", str(steps), "--epochs", str(steps),
                             "--place", place, "--log-json", log)
        if not done.good:
            return None, done.last_line
        found = trajectories.losses(log)
        return (found, done.text) if len(found) == steps else (None, f"{len(found)} of {steps} steps on {place}")

    def programs(self):
        self.each("programs", self.args.programs, self.check_program)

    def check_program(self, program):
        flags = [*PROGRAMS[program], "--dtype", "f64"]
        gpu, said = self.losses("programs", f"{program} cuda:0", program, "cuda:0", flags, PROGRAMS_STEPS)
        cpu, why = self.losses("programs", f"{program} cpu", program, "cpu", flags, PROGRAMS_STEPS)
        if gpu is None or cpu is None:
            self.report.say(f"{program} trains in f64 as on the CPU", False, said if gpu is None else why)
        else:
            part, step = max((trajectories.apart(a, b), i) for i, (a, b) in enumerate(zip(gpu, cpu)))
            self.report.say(f"{program} trains in f64 as on the CPU", part <= 1e-9, f"{part:.1e} apart at step {step}")
        if gpu is not None:
            self.check_plan("programs", program, program, flags, said)

    def check_plan(self, stage, name, program, flags, training):
        """What training with `flags` took beside the plan of a machine that does not see the GPU, to the
        byte: they may differ where a library turned out to have no algorithm, which is said then."""
        if not os.path.exists(self.file("devices.json")):
            self.describe()
        taken = ARENA_OF_TRAINING.search(training)
        same = [part for flag in PLANNED_BY if flag in flags for part in (flag, flags[flags.index(flag) + 1])]
        plan = self.fluidrun(stage, "plan", program, *same, "--place", "cuda:0", "--target", self.file("devices.json"),
                             "--json", limit=120, FLUID_GPU_LIBRARY="/nowhere")
        planned = json.loads(plan.stdout)["arena_bytes"] if plan.good else plan.last_line
        generated = [line for line in training.splitlines() if line.endswith(": code is generated")]
        self.report.say(f"{name} takes what was planned without the GPU",
                        bool(taken) and planned == int(taken.group(1)),
                        "; ".join([f"{taken.group(1) if taken else 'no'} bytes taken, planned {planned}", *generated]))

    def gpu_tests(self):
        program, chosen = self.program("test_gpu"), self.args.filter or "*"
        listing = self.processes.run("gpu_tests", [program, "--gtest_list_tests", f"--gtest_filter={chosen}"], 120,
                                     environment=self.cuda)
        suites = gtest_runs.listed(listing.stdout)
        if not listing.good or not suites:
            return self.report.say("test_gpu lists its tests", False, listing.last_line)
        results, figures = {suite: {} for suite in suites}, self.file("gtest")
        os.makedirs(figures, exist_ok=True)
        parts = gtest_runs.parts_of(suites, self.args.jobs)
        running, late, lock = collections.Counter(part.suite for part in parts), set(), threading.Lock()

        def run(part):
            suite, done = part.suite, {}
            try:
                self.guarded("gpu_tests", f"gpu_tests {suite}", gtest_runs.run_part, self.processes, program, part, done,
                             figures, self.cuda)
            except OutOfTime:
                late.add(suite)
            with lock:
                results[suite].update(done)
                write_json({name: tests for name, tests in results.items() if tests}, self.file("gpu_tests.json"))
                running[suite] -= 1
                if running[suite]:
                    return
                self.say_suite(suite, suites[suite], results[suite])
                if suite in late:
                    self.report.leave(f"gpu_tests {suite}")

        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            list(pool.map(run, [part for part in parts if not part.is_alone]))
        for part in parts:
            if part.is_alone:
                run(part)

    def say_suite(self, suite, tests, done):
        """A test is skipped where there is no GPU: then the suite says nothing of one."""
        counts = collections.Counter(result for result in done.values() if result == "ok" or result.startswith("skipped"))
        in_order = [*tests, *sorted(set(done) - set(tests))]
        failed = [f"{test.removeprefix(suite)} ({done[test]})" for test in in_order if done.get(test, "ok") not in ("ok", *counts)]
        left = len(set(tests) - set(done))
        detail = [*(f"{count} {result}" for result, count in sorted(counts.items())),
                  *([f"{left} not done"] if left else []), *failed]
        if done:
            good = "ok" in counts and not failed and not set(counts) - {"ok", gtest_runs.SKIPS_ON_A_HOST}
            self.report.say(suite.strip("."), good, ", ".join(detail))

    def trajectories(self):
        data = self.file("cifar10")
        trajectories.write_cifar10(data)
        exact = {}

        def run(item):
            program, mode = item.split(" ", 1)
            flags = [flag.format(data) for flag in trajectories.NETWORKS[program]]
            precision, rounds_to = trajectories.MODES[mode]
            train = lambda name, place, more: self.losses("trajectories", name, program, place, [*flags, *more],
                                                          self.args.steps)
            if program not in exact:
                exact[program] = train(f"{program} f64 cpu", "cpu", ["--dtype", "f64"])
            on_gpu, said = self.check_repeats(item, lambda name, *more: train(name, "cuda:0", [*precision, *more]))
            if on_gpu is not None:
                self.check_plan("trajectories", item, program, [*flags, *precision], said)
            on_cpu = train(f"{item} cpu", "cpu", precision)
            self.check_losses(item, [(on_gpu, said), on_cpu, exact[program]], trajectories.LEAST[rounds_to])

        self.each("trajectories", [f"{n} {m}" for n in self.args.networks for m in self.args.modes], run)

    def check_repeats(self, item, train):
        """Trains twice, for the same losses and parameters; train(name, flags) of the first."""
        with tempfile.TemporaryDirectory(dir=self.args.out) as folder:
            files = [os.path.join(folder, name + ".safetensors") for name in ("first", "again")]
            first = train(f"{item} cuda:0", "--save", files[0])
            if first[0] is None:
                return first
            again, why = train(f"{item} cuda:0 again", "--save", files[1])
            if again is not None:
                differ = [i for i, (a, b) in enumerate(zip(first[0], again)) if a != b]
                why = f"the losses of step {differ[0]} differ" if differ else ""
                if not differ and not filecmp.cmp(*files, shallow=False):
                    why = "the parameters differ"
            self.report.say(f"{item} gives the same bits again", not why, why)
        return first

    def check_losses(self, item, runs, least):
        """Those on the GPU beside those on the CPU, in the same precision and in f64: each, or None, and why."""
        for losses, why in runs:
            if losses is None:
                return self.report.say(item, False, why)
        found, expected, exact = (losses for losses, _ in runs)
        part, step = trajectories.farthest(found, expected, exact, least)
        without = trajectories.refusal_of_no_learning(expected, exact, least)
        good = part <= 1 and without >= trajectories.LEARNS
        return self.report.say(item, good, f"{part:.2f} of what is allowed, at step {step}; {without:.3g} without learning")

    def sanitizer(self):
        tool = sanitizer.program()
        if tool is None:
            return self.report.say(sanitizer.NAME, False, "it is not installed")

        def run(check):
            command = sanitizer.command(tool, check, self.program("test_gpu"), self.args.filter)
            self.report.say(check, *sanitizer.verdict(self.processes.run("sanitizer", command, 1800, environment=self.cuda)))

        return self.each("sanitizer", sanitizer.TESTS, run)

    def bench(self):
        finds_torch = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
        if not self.processes.run("bench", [self.args.python, "-c", finds_torch], 120).good:
            return self.report.say("bench", False, f"{self.args.python} has no PyTorch")
        path = self.file("bench.json")
        before = gpu_results.read(path)
        try:
            done = self.processes.run("bench", [
                sys.executable, gpu_bench.__file__, self.args.build, self.args.python, "--only", ",".join(self.args.works),
                "--deadline", str(self.processes.left() - BENCH_ENDS_SECONDS), "--rounds", str(self.args.rounds),
                *(["--peer-caches", self.args.peer_caches] if self.args.peer_caches else []), "--out", path], 7200)
            if done.code not in (0, gpu_bench.MISSED, gpu_bench.LEFT_OUT) or done.why:
                self.report.say("bench", False, done.last_line)
        finally:
            self.say_works(before, gpu_results.read(path))

    def say_works(self, before, found):
        for name in self.args.works:
            work = found.get(name)
            if work is None or work == before.get(name):
                if self.processes.left() > BENCH_GIVES_UP_SECONDS:
                    self.report.say(f"bench {name}", False, "not measured, though there was time")
                else:
                    self.report.leave(f"bench {name}")
            elif (verdict := gpu_results.verdict(work)) == "not known":
                self.report.leave(f"bench {name}: {gpu_results.says(work)}")
            else:
                self.report.say(f"bench {name}", verdict == "met", gpu_results.says(work))


def first_gpus_problem(description):
    """Why Fluid cannot use cuda:0, of what `devices --json` says; "" if it can."""
    machine = json.loads(description)["machine"]
    if not machine["gpus"]:
        return machine.get("no_gpus", "no GPU is listed")
    return machine["gpus"][0].get("problem", "")


STAGES = {name: getattr(Stages, name)
          for name in ("devices", "programs", "gpu_tests", "trajectories", "bench", "sanitizer")}
