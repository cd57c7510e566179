"""Processes that measure one work each, and take turns."""

import json
import os
import statistics
import subprocess


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
