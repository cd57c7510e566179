"""Trains AlexNet on CIFAR-10 in three precisions, in one process and in two, and prints a table.

    python alexnet_table.py BUILD_DIR SPEC [--epochs N] [--rounds N] [--only ROW,...] [--out FILE]

BUILD_DIR holds fluidrun and its examples. SPEC is the data with a validation split, such as
'cifar10:DIR?val=0.1'. The global batch has 64 samples: two processes train on 32 each. All rows
start from the same parameters and read the same samples in the same order. Each round runs every
row; the time of an epoch is the median over epochs and rounds, without validation. Memory is the
peak resident memory of one process. --out merges the rows into FILE.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

from bench_works import cpu_name, write
from runner import arguments

BATCH = 64
PRECISIONS = {
    "f32": [],
    "bf16": ["--amp", "o1"],
    "f16": ["--amp", "o1", "--amp-dtype", "f16", "--loss-scale", "dynamic"],
}
ROWS = {f"{precision} in {processes} process{'es' * (processes > 1)}": (precision, processes)
        for processes in (1, 2) for precision in PRECISIONS}


def train(fluidrun, spec, epochs, row):
    """Seconds of each epoch, the validation metrics of the last one, and peak memory in bytes."""
    precision, processes = ROWS[row]
    launch = ["launch", "--nproc", str(processes), "--"] if processes > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.json")
        command = [fluidrun, *launch, "train", "alexnet_cifar10", "--data", spec, "--val", spec,
                   "--batch", str(BATCH // processes), "--epochs", str(epochs), "--place", "cpu",
                   "--log-json", log, *PRECISIONS[precision]]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
        with open(log) as f:
            events = [json.loads(line) for line in f]
    seconds = [e["seconds"] for e in events if e.get("event") == "epoch"]
    validation = [e for e in events if e.get("event") == "validation"][-1]
    return seconds, validation, usage.ru_maxrss * 1024


def main():
    args, rows = arguments(ROWS, second="spec", rounds=1, epochs={"type": int, "default": 3})
    fluidrun = os.path.join(args.build, "fluidrun")
    seconds, results = {row: [] for row in rows}, {}
    for _ in range(args.rounds):
        for row in rows:
            times, validation, memory = train(fluidrun, args.spec, args.epochs, row)
            seconds[row] += times
            results[row] = {"minutes_per_epoch": statistics.median(seconds[row]) / 60,
                            "peak_bytes": memory, "accuracy": validation["accuracy"],
                            "loss": validation["loss"], "epochs": args.epochs}
            if args.out:
                write({"cpu": cpu_name(), "cores": os.cpu_count(), "alexnet_table": results}, args.out)
            print(f"{row}: {results[row]}", file=sys.stderr)
    print("| AlexNet on CIFAR-10 | minutes an epoch | peak memory, MiB | accuracy |\n|---|---|---|---|")
    for row, r in results.items():
        print(f"| {row} | {r['minutes_per_epoch']:.2f} | {r['peak_bytes'] / 2**20:.0f} "
              f"| {r['accuracy']:.1%} |")


if __name__ == "__main__":
    main()
