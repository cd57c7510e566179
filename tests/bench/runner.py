"""Shared code of the benchmarks: the command line, and processes that are measured in turns."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading


def arguments(known, second="python", rounds=5, **options):
    """Parses the command line. Returns the arguments and the workloads of --only, or all of `known`.
    `second` names the second positional argument: the Python that runs PyTorch, or another build.
    `options` maps further options to their argparse settings. With rounds=0 there is no --rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument(second)
    if rounds:
        parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    for name, settings in options.items():
        parser.add_argument("--" + name, **settings)
    args = parser.parse_args()
    works = args.only.split(",") if args.only else list(known)
    unknown = set(works) - set(known)
    if unknown:
        parser.error(f"no work {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return args, works


def exit_code(missed):
    """Prints the missed targets to stderr. Returns 1 if there are any, else 0."""
    if missed:
        print("missed: " + ", ".join(missed), file=sys.stderr)
    return 1 if missed else 0


class Runner:
    """A benchmark process. It prints a line of JSON when it is ready, and one for each measurement that
    measure() requests; its other lines go to stderr. It is killed if a response takes more than `limit`
    seconds. The error of a failed process includes the last line of its stderr."""

    def __init__(self, name, command, environment=(), limit=None):
        self.name, self.times, self.limit, self.failed = name, [], limit, False
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace",
                                        env=os.environ | dict(environment))
        self.complaint = ""
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()
        self.ready = self.read()

    def listen(self):
        for line in self.process.stderr:
            print(line, end="", file=sys.stderr)
            self.complaint = line.strip() or self.complaint

    def read(self):
        killer = threading.Timer(self.limit, self.process.kill) if self.limit else None
        if killer:
            killer.start()
        try:
            for line in self.process.stdout:
                if line.startswith("{"):
                    return json.loads(line)
                print(line, end="", file=sys.stderr)
        finally:
            late = killer is not None and not killer.is_alive()
            if killer:
                killer.cancel()
        reason = f"took more than {self.limit:g} s" if late else f"ended with {self.process.wait()}"
        self.failed = True
        self.listener.join(timeout=1)
        raise RuntimeError(f"{self.name} {reason}" + (f": {self.complaint}" if self.complaint else ""))

    def measure(self):
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # read() says how it ended
        self.times.append(self.read()["ms"])

    def end_input(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def close(self):
        self.end_input()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.listener.join(timeout=1)

    def row(self):
        return {"ms": statistics.median(self.times), "ms_min": min(self.times), "ms_max": max(self.times),
                **self.ready}


def measure_in_turns(runners, rounds, failures=None, more=lambda: True):
    """Measures the runners in turns and closes them. Returns their rows by name. Appends the error of a
    failed runner to `failures`, and continues with the others; without `failures`, raises the error.
    Starts no further round once more() is false."""
    going = list(runners)
    try:
        for _ in range(rounds):
            if not more():
                break
            for runner in list(going):
                try:
                    runner.measure()
                except RuntimeError as failure:
                    if failures is None:
                        raise
                    failures.append(str(failure))
                    going.remove(runner)
    finally:
        for runner in runners:
            runner.end_input()
        for runner in runners:
            runner.close()
    return {runner.name: runner.row() for runner in going if runner.times}
