"""What benchmarks share: their command line, and processes that measure one work each and take turns."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading


def arguments(known, second="python", rounds=5, **options):
    """The command line, and which of the works `known` it asks for: all of them without --only. It names
    a build and, as `second`, the peers' Python or another build. `options` are further ones, with what
    argparse needs to know. With rounds=0 there is no --rounds."""
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
    """Names the targets that were missed: 1, and 0 where none was."""
    if missed:
        print("missed: " + ", ".join(missed), file=sys.stderr)
    return 1 if missed else 0


class Runner:
    """A process that is ready once it has said so, and measures when told, printing one line of JSON;
    other lines go to stderr. One that takes `limit` seconds for an answer is killed. Why one failed
    is said with the last line that it wrote to its own stderr."""

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
    """What each measured, by name. Of one that fails `failures` says why, and the others go on; without
    that list it is raised. No round begins when there is not `more` time. All are closed then."""
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
