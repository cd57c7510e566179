"""What benchmarks share: their command line, and processes that measure one work each and take turns."""

import argparse
import json
import os
import statistics
import subprocess
import sys


def arguments(known):
    """The command line, and which of the works `known` it asks for: all of them without --only."""
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    args = parser.parse_args()
    works = args.only.split(",") if args.only else list(known)
    unknown = set(works) - set(known)
    if unknown:
        parser.error(f"no work {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return args, works


def exit_code(missed):
    """Names the targets that were missed: 1, and 0 where none was."""
    if missed:
        print("missed: " + ", ".join(missed), file=sys.stderr)
    return 1 if missed else 0


class Runner:
    """A process that is ready once it has said so, and measures when told, printing one line of JSON."""

    def __init__(self, name, command, environment=()):
        self.name, self.times = name, []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | dict(environment))
        self.ready = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with {self.process.wait()}")
        return json.loads(line)

    def measure(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.times.append(self.read()["ms"])

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)

    def row(self):
        return {"ms": statistics.median(self.times), "ms_min": min(self.times), "ms_max": max(self.times),
                **self.ready}


def measure_in_turns(runners, rounds):
    """What each measured, by name."""
    for _ in range(rounds):
        for runner in runners:
            runner.measure()
    for runner in runners:
        runner.close()
    return {runner.name: runner.row() for runner in runners}
