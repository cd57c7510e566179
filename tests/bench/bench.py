"""Measures Fluid against PyTorch, and how soon it starts, in one run and prints the tables of docs/benchmarks.md.

    python bench.py BUILD_DIR PEER_PYTHON [--rounds 5] [--only WORK,...] [--out FILE.json]

Every variant of a work is a process of its own that has warmed up; then they take turns, `rounds`
times (3 at most for NETWORKS, whose steps take a second), and the medians are compared. PyTorch's
best of eager or compiled and NCHW or NHWC counts. The works `start_up` and
`memory` are start_up.py's and memory.py's. With
--out, what was measured replaces what FILE says of it. Exits with 1 when a target is missed.
"""

import json
import os
import platform
import sys
import tempfile

import memory
import start_up
from runner import Runner, arguments, exit_code, measure_in_turns

HERE = os.path.dirname(os.path.abspath(__file__))
# work: (what it is, largest allowed ratio of Fluid's time to PyTorch's best)
TARGETS = {
    "linear_regression": ("linear regression, 1e6 x 2, Adam, a full-batch step", 0.1),
    "seed_cnn": ("CNN 1-32-64, batch 128 x 1 x 32 x 32, Adam", 0.95),
    "fluid_mnist": ("MNIST CNN 20-20, batch 100, SGD", 1.0),
    "seed_cnn_infer": ("CNN 1-32-64, inference of one image", 0.5),
    "alexnet": ("AlexNet, batch 64 x 3 x 227 x 227, AdamW", 0.85),
    "alexnet_bf16": ("the same in mixed precision, bf16", 0.75),
    "resnet18": ("ResNet-18, batch 128 x 3 x 32 x 32, momentum", 1.0),
    "resnet18_bf16": ("the same in mixed precision, bf16", 1.0),
}
NETWORKS = ("alexnet", "alexnet_bf16", "resnet18", "resnet18_bf16")
# glibc would give large blocks back after every step, and PyTorch would pay for their pages again in
# the next: 19.7 instead of 12.6 ms for fluid_mnist.
PEER_SETTINGS = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}
FLUID_SETTINGS = {"GOMP_SPINCOUNT": "1000"}  # as fluidrun sets it for itself (executor/cpu/README.md)
VARIANTS = [(mode, layout) for mode in ("eager", "compile") for layout in ("nchw", "nhwc")]


def rounds_of(work, args):
    return min(args.rounds, 3) if work in NETWORKS else args.rounds


def measure(work, args, cache):
    runners = [Runner("fluid", [os.path.join(args.build, "fluid_bench"), work, cache], FLUID_SETTINGS)]
    for mode, layout in VARIANTS:
        if work == "linear_regression" and layout == "nhwc":
            continue  # no images
        runners.append(Runner(f"torch-{mode}-{layout}",
                              [args.python, os.path.join(HERE, "torch_peer.py"), work, mode, layout],
                              PEER_SETTINGS))
    return measure_in_turns(runners, rounds_of(work, args))


def cpu_name():
    with open("/proc/cpuinfo") as f:
        return next((l.split(":")[1].strip() for l in f if l.startswith("model name")), platform.processor())


def compare(works, args):
    """Prints the table. The results for the JSON file, and the names of missed targets."""
    results, missed = {}, []
    print("| work | Fluid ms | PyTorch's best ms | ratio | target | first step s, Fluid / PyTorch |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        for work in works:
            rows = measure(work, args, cache)
            best = min((n for n in rows if n != "fluid"), key=lambda n: rows[n]["ms"])
            ratio = rows["fluid"]["ms"] / rows[best]["ms"]
            text, target = TARGETS[work]
            if ratio > target:
                missed.append(work)
            results[work] = {"rows": rows, "best_peer": best, "ratio": ratio, "target": target,
                             "rounds": rounds_of(work, args)}
            print(f"| {text} | {rows['fluid']['ms']:.3f} | {rows[best]['ms']:.3f} ({best}) | {ratio:.2f} "
                  f"| {target} | {rows['fluid']['first_s']:.2f} / {rows[best]['first_s']:.1f} |", flush=True)
    return results, missed


def write(results, path):
    """Over what the file says of the same works; its others stay."""
    if os.path.exists(path):
        with open(path) as f:
            known = json.load(f)
        if "works" in results:
            results["works"] = known.get("works", {}) | results["works"]
        results = known | results
    with open(path, "w") as f:
        json.dump(results, f, indent=1)


def main():
    args, works = arguments([*TARGETS, "start_up", "memory"])

    results = {"cpu": cpu_name(), "threads": os.cpu_count()}
    missed = []
    compared = [work for work in works if work in TARGETS]
    if compared:
        results["works"], missed = compare(compared, args)
        print()
    if "start_up" in works:
        results["start_up"], too_slow = start_up.report(args.build, args.rounds)
        missed += too_slow
    if "memory" in works:
        results["memory"] = memory.report(args, FLUID_SETTINGS, PEER_SETTINGS)
    if args.out:
        write(results, args.out)
    return exit_code(missed)


sys.exit(main())
