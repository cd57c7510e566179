"""How long `fluidrun train` takes to begin, from outside, with no kernel cache and with a warm one."""

import os
import re
import statistics
import subprocess
import tempfile
import time

TRAIN_AND_VAL = {  # a batch that divides neither: two sizes to train with, two to evaluate with
    "linear_regression": (["--data", "synthetic-linear", "--batch", "300000"],
                          ["--val", "synthetic-linear?n=500000&seed=1"]),
    "mnist_fluid": (["--data", "digits", "--batch", "128"], ["--val", "digits"]),
    "mnist_cnn": (["--data", "digits", "--batch", "128"], ["--val", "digits"]),
}
LIMITS = {  # medians, in seconds
    "compile": ("all sizes compiled, no cache", 1.5),
    "load": ("all sizes from the cache", 0.1),
    "first_step": ("first step after the start, cached", 0.5),
}
LINE = re.compile(r"(\d+) kernels compiled, (\d+) from the cache, (\d+) ms")


def train(fluidrun, program, flags, cache, cold):
    """Seconds of compiling, as `train` says, and of the whole process, which ends after a step."""
    command = [fluidrun, "train", program, *flags, "--max-steps", "1", "--cache-dir", cache]
    begin = time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    line = LINE.search(run.stderr)
    if run.returncode != 0 or not line:
        raise RuntimeError(f"{' '.join(command)}: {run.stderr}")
    compiled, cached, ms = map(int, line.groups())
    if (compiled == 0) if cold else (compiled > 0 or cached == 0):
        raise RuntimeError(f"{program}, {'cold' if cold else 'warm'}: {line.group()}")
    return ms / 1e3, seconds


def measure(fluidrun, rounds):
    """times[program][figure]: seconds of every round; the programs take turns."""
    times = {program: {figure: [] for figure in LIMITS} for program in TRAIN_AND_VAL}
    for _ in range(rounds):
        for program, (data, val) in TRAIN_AND_VAL.items():
            seen = times[program]
            with tempfile.TemporaryDirectory() as cache:
                seen["compile"].append(train(fluidrun, program, data + val, cache, cold=True)[0])
                seen["load"].append(train(fluidrun, program, data + val, cache, cold=False)[0])
                seen["first_step"].append(train(fluidrun, program, data, cache, cold=False)[1])
    return times


def report(build, rounds):
    """Prints the table. The results for the JSON file, and the names of missed targets."""
    times = measure(os.path.join(build, "fluidrun"), rounds)
    print("| seconds | " + " | ".join(f"{text} (< {limit})" for text, limit in LIMITS.values()) + " |")
    print("|---|" + "---|" * len(LIMITS))
    results, missed = {}, []
    for program, seen in times.items():
        rows = {figure: {"s": statistics.median(t), "s_min": min(t), "s_max": max(t), "target": LIMITS[figure][1]}
                for figure, t in seen.items()}
        missed += [f"{program} {figure}" for figure, row in rows.items() if row["s"] >= row["target"]]
        results[program] = rows
        print(f"| {program} | " + " | ".join(f"{row['s']:.3f}" for row in rows.values()) + " |", flush=True)
    return results, missed
