"""Compares training the last block of ResNet-50 with training all of it, in time and memory.

    python frozen.py BUILD_DIR [--batch 16] [--rounds 5] [--steps 2] [--out FILE.json]

Images of 32 x 32 are resized to 224 x 224 in the step. The planned bytes are those of `fluidrun plan`. The times are
medians of `fluidrun bench`, whose runs take turns; the peak is the resident memory of its process. Exits with 1 where
the last block takes more than 0.45 of the time or 0.3 of the planned memory of the whole network. Needs numpy.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import numpy

from bench_works import cpu_name, write
from runner import exit_code

LAST = ["--freeze", "*", "--param", "{layer4.2,fc}:train=1"]
FLAGS = {"all": [], "the last block": LAST,
         "the last block, frozen statistics": [*LAST, "--freeze-stats", "layer[123]", "--freeze-stats", "bn1"]}
TARGETS = {"ms": 0.45, "planned": 0.3}
COLUMNS = {"ms": "ms a step", "planned": "planned MiB", "peak": "resident peak, MiB"}


def planned_mib(args, flags):
    plan = subprocess.check_output([args.fluidrun, "plan", args.program, "--batch", str(args.batch), "--json", *flags])
    return json.loads(plan)["arena_bytes"] / 2**20


def timed(args, flags, data):
    """Returns the milliseconds per step and the resident peak in MiB of a run."""
    command = [args.fluidrun, "bench", args.program, "--data", data, "--batch", str(args.batch), "--warmup", "1",
               "--steps", str(args.steps), "--repeat", "1", "--place", "cpu", *flags]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        output.seek(0)
        text = output.read()
    if status != 0:
        raise RuntimeError(f"{' '.join(command)}: {text}")
    return float(re.search(r"([\d.]+) ms/step", text).group(1)), usage.ru_maxrss / 1024


def write_images(path, count):
    random = numpy.random.default_rng(0)
    images = random.integers(0, 256, (count, 3, 32, 32), numpy.uint8)
    numpy.savez(path, image=images, label=random.integers(0, 10, count))


def measure(args, data):
    """Returns the figures of each entry of FLAGS: medians of runs in turns."""
    runs = {name: [] for name in FLAGS}
    for _ in range(args.rounds):
        for name, flags in FLAGS.items():
            runs[name].append(timed(args, flags, data))
    return {name: {"ms": statistics.median(ms for ms, _ in runs[name]),
                   "planned": planned_mib(args, flags),
                   "peak": statistics.median(peak for _, peak in runs[name])}
            for name, flags in FLAGS.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--program", default="resnet50", help="the example, or its .fluid file")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--out")
    args = parser.parse_args()
    args.fluidrun = os.path.join(args.build, "fluidrun")
    with tempfile.TemporaryDirectory() as folder:
        images = os.path.join(folder, "images.npz")
        write_images(images, 4 * args.batch)
        figures = measure(args, f"npz:{images}")
    print("| what trains | " + " | ".join(COLUMNS.values()) + " |\n|---" + "|---" * len(COLUMNS) + "|")
    ratios = {name: {c: row[c] / figures["all"][c] for c in COLUMNS} for name, row in figures.items()}
    for name, row in figures.items():
        print(f"| {name} | " + " | ".join(f"{row[c]:.0f} ({ratios[name][c]:.2f})" for c in COLUMNS) + " |")
    if args.out:
        write({"cpu": cpu_name(), "frozen": {"batch": args.batch, "figures": figures, "ratios": ratios}}, args.out)
    sys.exit(exit_code([COLUMNS[c] for c, target in TARGETS.items() if ratios["the last block"][c] > target]))


if __name__ == "__main__":
    main()
