"""Compares Fluid with PyTorch on the first GPU, and prints a table.

    python gpu_bench.py BUILD_DIR PEER_PYTHON [--rounds 5] [--only WORK,...] [--deadline SECONDS] [--out FILE.json]
                        [--peer-caches DIR [--prime]]

BUILD_DIR holds fluid_bench and fluidrun. Batches stay on the GPU. A step ends when its loss, or an element
of its result, is on the host. PyTorch runs eager and compiled (torch.compile, mode "reduce-overhead"), NCHW
and NHWC; the faster layout counts. The forward pass, the loss and the backward pass are compiled. The fused
optimizer and the gradient scaler stay eager; compiling them might make PyTorch faster. Both sides compute
f32 without TF32, except in workloads whose names end in _tf32. The memory column compares Fluid's arena and
workspace with torch.cuda.max_memory_allocated. The time of the first step starts with the program, without
the import of PyTorch. Each process has empty kernel caches, unless --peer-caches names a folder for those
of torch.compile. --prime fills it: it starts all compiled sides at once, and measures nothing. The compiled
first steps that are measured with it are shorter than a user's.

The two percentages compare Fluid's step with the peak rates that the driver reports: the FLOPs of its ops,
and the bytes that its calls read and write, each counted once.

A side that fails to start, or dies, reports the reason. A comparison whose sides all failed misses its
target. If another layout of the side ran, the result may be "not known", because the failed layout might be
faster. Near the deadline, no side starts any more, and the sides that are ready are measured; the others are
listed as left out. --out writes each workload when it is done (gpu_results.py), with the versions of its
run. Exits with 3 when a target is missed, with 4 when none is missed but something is left out or not known,
and with 1 when a workload or the script failed.
"""

import glob
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import gpu_results
from cuda_folders import cuda_folders, with_cuda
from runner import Runner, arguments, measure_in_turns

HERE = os.path.dirname(os.path.abspath(__file__))
# workload: (description, largest ratios of Fluid to PyTorch: eager time, compiled time, memory; None: no
# target)
WORKS = {
    "matmul": ("matmul 10000 x 200 x 10000", 1.05, None, None),
    "linear_regression": ("linear regression, 1e6 x 2, Adam, a full-batch step", 0.3, 0.7, 0.8),
    "seed_cnn": ("CNN 1-32-64, batch 128 x 1 x 32 x 32, Adam", 0.3, 0.7, 0.8),
    "fluid_mnist": ("MNIST CNN 20-20, batch 100, SGD", 0.3, 0.7, 0.8),
    "alexnet": ("AlexNet, batch 64 x 3 x 227 x 227, AdamW", None, 0.95, 1.0),
    "alexnet_bf16": ("AlexNet in bf16", None, 0.95, 1.0),
    "alexnet_f16": ("AlexNet in f16, with loss scaling", None, 0.95, 1.0),
    "resnet18_b64_bf16": ("ResNet-18, batch 64 x 3 x 32 x 32, momentum, bf16", None, 0.95, 0.8),
}
for f32 in [work for work in WORKS if not work.endswith("16")]:
    WORKS[f32 + "_tf32"] = (WORKS[f32][0] + ", TF32 allowed", *WORKS[f32][1:])
WITHOUT_IMAGES = ("matmul", "linear_regression")
MISSED, LEFT_OUT = 3, 4  # exit codes
ANSWER_SECONDS = 150  # time limit of a process that compiles or measures
TURN_SECONDS = 1  # duration of a measurement
VARIANTS = [(mode, layout) for mode in ("eager", "compile") for layout in ("nchw", "nhwc")]


def commands(work, args, cache):
    yield "fluid", [os.path.join(args.build, "fluid_bench"), work, cache, "cuda:0"]
    for mode, layout in VARIANTS:
        if work.removesuffix("_tf32") not in WITHOUT_IMAGES or layout == "nchw":
            yield (f"torch-{mode}-{layout}",
                   [args.python, os.path.join(HERE, "torch_peer.py"), work, mode, layout, "cuda"])


def peer_caches(folder, name):
    """The environment that puts torch.compile's caches of one side below `folder`."""
    own = os.path.join(folder, name)
    return {"TORCHINDUCTOR_CACHE_DIR": own + "-inductor", "TRITON_CACHE_DIR": own + "-triton"}


def prime(works, args, deadline):
    """Starts the compiled sides of all works at once, which fills their caches. Returns the reasons of failures."""
    failures = []

    def start(work, name, command):
        caches = peer_caches(os.path.join(args.peer_caches, work), name) | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
        try:
            Runner(name, command, caches, min(ANSWER_SECONDS, deadline.left())).close()
        except Exception as failure:
            failures.append(f"{work}: {failure}")

    sides = [(work, name, command) for work in works for name, command in commands(work, args, "")
             if name.startswith("torch-compile")]
    threads = [threading.Thread(target=start, args=side) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


class Deadline:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


def measure(work, args, cache, deadline):
    """Returns the measured rows, the reasons of failures, the failed sides, and the sides left out for lack of time."""
    runners, failures, left_out = [], [], []
    sides = list(commands(work, args, cache))
    kept = TURN_SECONDS * len(sides) * args.rounds  # for measuring
    for name, command in sides:
        caches = peer_caches(os.path.join(args.peer_caches, work) if args.peer_caches else cache, name)
        environment = with_cuda(os.environ) if name == "fluid" else caches
        seconds = min(ANSWER_SECONDS, deadline.left() - kept)
        try:
            if seconds > 0:
                runners.append(Runner(name, command, environment, seconds))
            else:
                left_out.append(name)
        except (OSError, RuntimeError) as failure:
            if deadline.left() <= kept:
                left_out.append(name)
            else:
                failures.append(str(failure))
    rows = measure_in_turns(runners, args.rounds, failures, lambda: deadline.left() > 0)
    left_out += [r.name for r in runners if r.name not in rows and not r.failed]
    failed = [name for name, _ in sides if name not in rows and name not in left_out]
    return rows, failures, failed, left_out


def versions_of_fluid(args):
    """Returns the versions of the driver and of the CUDA libraries that fluidrun finds."""
    fluidrun = os.path.join(args.build, "fluidrun")
    if not os.path.exists(fluidrun):
        return {}
    done = subprocess.run([fluidrun, "devices", "--json"], capture_output=True, text=True,
                          env=os.environ | with_cuda(os.environ))
    return json.loads(done.stdout)["machine"]["versions"] if done.returncode == 0 else {"fluidrun": done.stderr}


def machine():
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    if shutil.which(query[0]) is None:
        return "unknown"
    return subprocess.run(query, capture_output=True, text=True).stdout.strip() or "unknown"


def read_libraries():
    """Reads the CUDA libraries into the page cache, so that no side measures the disk."""
    for folder in cuda_folders():
        for path in glob.glob(os.path.join(folder, "*.so*")):
            with open(path, "rb") as library:
                while library.read(1 << 24):
                    pass


def run_work(work, args, deadline, run):
    """Measures, prints and writes `work`. Returns its missed targets, and what is left out or not known
    because sides failed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        rows, failures, failed, left_out = measure(work, args, cache, deadline)
    if left_out and not rows and not failures:
        return [], [work]
    what, *limits = WORKS[work]
    result = {"what": what, "rows": rows, "comparison": gpu_results.compare(limits, rows, left_out, failed),
              "failures": failures, "left_out": left_out, **run}
    print(gpu_results.line_of(result), flush=True)
    for failure in failures:
        print(f"{work}: {failure}", file=sys.stderr, flush=True)
    if args.out:
        gpu_results.write({work: result}, args.out)
    missed = [name for name, figure in result["comparison"].items() if figure["met"] is False]
    unknown = failed if gpu_results.verdict(result) == "not known" else []
    return [f"{work} ({name})" for name in missed], [f"{work} ({name})" for name in left_out + unknown]


def main():
    args, works = arguments(WORKS, **{
        "deadline": {"type": float, "default": math.inf, "help": "seconds from now"},
        "peer-caches": {"help": "folder of torch.compile's caches"},
        "prime": {"action": "store_true", "help": "fill --peer-caches, and measure nothing"}})
    deadline = Deadline(args.deadline)
    read_libraries()
    if args.prime and not args.peer_caches:
        print("gpu_bench.py: --prime needs --peer-caches", file=sys.stderr)
        return 2
    if args.prime:
        failures = prime(works, args, deadline)
        print(*failures, sep="\n", file=sys.stderr)
        return 1 if failures else 0
    run = {"gpu": machine(), "rounds": args.rounds, "versions": versions_of_fluid(args),
           "caches_of_torch_compile": "filled before" if args.peer_caches else "empty"}
    found = {"not done": [], "missed": [], "broke": []}
    print(gpu_results.HEAD, flush=True)
    for work in works:
        try:
            missed, not_done = run_work(work, args, deadline, run)
            found["missed"] += missed
            found["not done"] += not_done
        except Exception:
            traceback.print_exc()
            found["broke"].append(work)
    for what, names in found.items():
        if names:
            print(f"{what}: {', '.join(names)}", file=sys.stderr)
    if found["broke"]:
        return 1
    return MISSED if found["missed"] else LEFT_OUT if found["not done"] else 0


if __name__ == "__main__":
    sys.exit(main())
