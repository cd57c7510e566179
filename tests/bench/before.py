"""Compares two builds of Fluid in one run: step times, planned bytes, compile times, trained parameters.

    python before.py BUILD_DIR BEFORE_BUILD_DIR [--rounds 5] [--only WORK,...] [--out FILE.json]

For each workload of bench.py, a process of each build warms up; then the two are measured in turns.
Workloads named "train_..." train an example for 50 steps with each build's fluidrun and compare the bytes
of the parameter files. Exits with 1 when a median step is more than 3 % slower, an arena has another size, or
parameters differ. FLUID_DATA names the folder with cifar10; without it the networks that need it are
left out, and the output says so.
"""

import filecmp
import os
import subprocess
import sys
import tempfile

from bench_works import TARGETS, cpu_name, write
from runner import Runner, arguments, exit_code, measure_in_turns

SLOWER = 1.03
CIFAR10 = os.path.join(os.environ.get("FLUID_DATA", ""), "cifar10")
TRAINED = {  # example: data and options
    "train_linear_regression": ["synthetic-linear?n=100000", "--epochs", "50"],
    "train_mnist_fluid": ["digits", "--batch", "100"],
    "train_mnist_cnn": ["digits", "--batch", "128"],
    "train_mnist_cnn_bf16": ["digits", "--batch", "128", "--amp", "o1"],
    "train_resnet18": [f"cifar10:{CIFAR10}", "--batch", "32"],
    "train_alexnet_cifar10": [f"cifar10:{CIFAR10}", "--batch", "4"],
}


def time_steps(work, builds, rounds):
    """Measures both builds in turns. Each starts with an empty kernel cache."""
    with tempfile.TemporaryDirectory() as caches:
        runners = [Runner(name, [os.path.join(build, "fluid_bench"), work, os.path.join(caches, name)])
                   for name, build in builds.items()]
        return measure_in_turns(runners, rounds)


def same_parameters(work, builds):
    """Whether 50 training steps of both builds write equal parameter files."""
    example = work.removeprefix("train_").removesuffix("_bf16")
    data, *options = TRAINED[work]
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, build in builds.items():
            files.append(os.path.join(folder, name + ".safetensors"))
            subprocess.run([os.path.join(build, "fluidrun"), "train", example, "--data", data, *options,
                            "--max-steps", "50", "--seed", "7", "--save", files[-1]],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return filecmp.cmp(*files, shallow=False)


def main():
    args, works = arguments([*TARGETS, *TRAINED], second="before")
    os.environ["FLUID_MACHINE"] = ""  # both builds choose kernels by the same assumed rates
    builds = {"now": args.build, "before": args.before}
    results, failed = {}, []
    print("| work | now ms | before ms | ratio | arena bytes, now / before | compile ms, now / before |")
    print("|---|---|---|---|---|---|")
    for work in (w for w in works if w in TARGETS):
        try:
            rows = time_steps(work, builds, args.rounds)
        except RuntimeError as error:
            if "no workload" not in str(error):
                raise
            print(f"| {work} | one of the builds does not have it |", flush=True)
            continue
        now, before = rows["now"], rows["before"]
        ratio = now["ms"] / before["ms"]
        if ratio > SLOWER or now["arena_bytes"] != before["arena_bytes"]:
            failed.append(work)
        results[work] = {"now": now, "before": before, "ratio": ratio}
        print(f"| {work} | {now['ms']:.3f} | {before['ms']:.3f} | {ratio:.3f} | {now['arena_bytes']} / "
              f"{before['arena_bytes']} | {now['compile_ms']:.0f} / {before['compile_ms']:.0f} |", flush=True)
    print()
    for work in (w for w in works if w in TRAINED):
        if "cifar10:" in TRAINED[work][0] and not os.path.isdir(CIFAR10):
            print(f"{work}: left out, FLUID_DATA names no folder with cifar10")
            continue
        same = same_parameters(work, builds)
        results[work] = {"same_parameters": same}
        if not same:
            failed.append(work)
        print(f"{work}: parameters after 50 steps are {'equal' if same else 'DIFFERENT'}", flush=True)
    if args.out:
        write({"cpu": cpu_name(), "before": results}, args.out)
    return exit_code(failed)


sys.exit(main())
