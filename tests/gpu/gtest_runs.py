"""Test programs of GoogleTest, run suite by suite, or part of a suite by part, in processes of their own.

After some failures nothing more works in a process: an illegal address stays an error of its GPU
context, and a crash ends it. So what failed for no reason of its own is run again in a fresh process.
"""

import os
import re

from processes import OutOfTime

MOST_PROCESSES = 6  # for a part of a suite; each settles one more test at least
QUIET_SECONDS = 240  # of a test
SUITE_SECONDS = 1800
BEGUN, ENDED = re.compile(r"\[ RUN      \] (\S+)"), re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:,|$| \()")
END = "end of its tests"  # of a process that fails there, beside the names of tests
ALONE = ("GpuMemoryUse.", "Gpu/GpuConformance.")  # suites that compare the GPU's free memory
RESULTS = {"OK": "ok", "FAILED": "failed", "SKIPPED": "skipped"}
SKIPS_ON_A_HOST = "skipped: a host's memory is not this process's alone"  # that stands in for a GPU


def listed(text):
    """The tests by suite, from --gtest_list_tests."""
    suites = {}
    for line in text.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  ") and suites:
            suites[next(reversed(suites))].append(name)
        elif name.endswith(".") and " " not in name:
            suites[name] = []
    return {suite: [suite + test for test in tests] for suite, tests in suites.items()}


def results_of(lines):
    """What became of each test that began, in their order; "ended" of one that the process died in, and
    "skipped: " with its reason, the line that follows where it skipped."""
    results, reason, before = {}, "", ""
    for line in lines:
        if begun := BEGUN.match(line):
            results[begun.group(1)], reason = "ended", ""
        elif (ended := ENDED.match(line)) and results.get(ended.group(2)) == "ended":
            result = RESULTS[ended.group(1)]
            results[ended.group(2)] = f"{result}: {reason}" if result == "skipped" else result
        elif before.rstrip().endswith(": Skipped"):
            reason = line.strip()
        before = line
    return results


def settled(results):
    """The results that say something of their test: all but the failures that follow the first one
    with nothing good between or after them, which may be that one's."""
    failures = [test for test, result in results.items() if result in ("failed", "ended")]
    names = list(results)
    last_good = max((i for i, test in enumerate(names) if results[test] == "ok"), default=-1)
    doubtful = [test for test in failures[1:] if names.index(test) > last_good]
    return {test: result for test, result in results.items() if test not in doubtful}


def how_it_ended(finished):
    return finished.why or f"the process ended with {finished.code}"


def with_reason(results, finished):
    """Says of the test that a process died in how that was."""
    return {test: how_it_ended(finished) if result == "ended" else result for test, result in results.items()}


def fell_after_its_tests(results, finished):
    """Whether a process failed though its tests did not: in what it tears down, or as it ends."""
    return bool(results) and not finished.good and not {"failed", "ended"} & set(results.values())


class Part:
    """Tests of a suite that run in one process."""

    def __init__(self, suite, tests, number=0, log="gpu_tests"):
        self.suite, self.tests, self.number, self.log = suite, tests, number, log
        self.is_alone = suite in ALONE

    @property
    def name(self):
        return self.suite.strip(".").replace("/", "_") + (f".{self.number}" if self.number else "")

    def figures(self, process):
        return f"{self.name}.{process}.json"


def parts_of(suites, jobs):
    """The suites, each in `jobs` parts at most, but those whose tests must be alone in one; those last."""
    parts = []
    for suite, tests in suites.items():
        size = len(tests) if suite in ALONE else -(-len(tests) // jobs)
        parts += [Part(suite, tests[i:i + size], i // size) for i in range(0, len(tests), size)]
    for part in parts if jobs > 1 else []:
        part.log += "." + part.name
    return sorted(parts, key=lambda part: part.is_alone)


def run_part(processes, program, part, done, out, environment=()):
    """Puts into `done` what became of each test of `part`, after every process; of some alone when the
    deadline comes."""
    suite, tests = part.suite, part.tests
    for number in range(MOST_PROCESSES):
        pending = [test for test in tests if test not in done]
        if not pending:
            return
        figures = os.path.join(out, part.figures(number))
        command = [program, f"--gtest_filter={':'.join(pending)}", f"--gtest_output=json:{figures}"]
        try:
            finished = processes.run(part.log, command, SUITE_SECONDS, QUIET_SECONDS, environment)
        except OutOfTime as late:
            done.update({test: result for test, result in results_of(late.output).items() if result != "ended"})
            raise
        results = results_of(finished.output)
        if not results:
            done.update({test: "not run: " + finished.last_line for test in pending})
        is_last = number + 1 == MOST_PROCESSES
        done.update(with_reason(results if is_last else settled(results), finished))
        if fell_after_its_tests(results, finished):
            done[suite + END] = how_it_ended(finished)
    done.update({test: "not run: the processes of its suite failed" for test in tests if test not in done})
