"""Measures Fluid against PyTorch on the first GPU, in one run, and prints a table.

    python gpu_bench.py BUILD_DIR PEER_PYTHON [--rounds 5] [--only WORK,...] [--out FILE.json]

BUILD_DIR holds fluid_bench. Batches stay on the GPU, in both; a step ends when its loss, or a number of
its result, is on the host. PyTorch runs eager and compiled (torch.compile, mode "reduce-overhead"), NCHW
and NHWC; of each the better layout counts. f32 is f32 in both; the works whose names end in _tf32 allow
TF32 in both. Memory is Fluid's arena with its workspace against torch.cuda.max_memory_allocated. The
first step is counted from the start of the program (what PyTorch's import takes left out), with no
kernel kept from before: each process has empty caches.

Of what the GPU can do at most, by its driver's figures, Fluid's step reaches the two percentages: of
operations by its ops' definitions, and of the bytes that its calls read and write, each once.

What does not start, or dies, says why, and misses its targets; with --out every work that is done is
written at once, and replaces what FILE says of it. Exits with 1 when a target is missed.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

from cuda_folders import cuda_folders, with_cuda
from runner import Runner, arguments, exit_code, measure_in_turns

HERE = os.path.dirname(os.path.abspath(__file__))
# work: (what it is, largest ratios of Fluid's time to PyTorch's eager and compiled, and of its memory)
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
ANSWER_SECONDS = 300  # of a process that compiles, or measures
VARIANTS = [(mode, layout) for mode in ("eager", "compile") for layout in ("nchw", "nhwc")]


def commands(work, args, cache):
    yield "fluid", [os.path.join(args.build, "fluid_bench"), work, cache, "cuda:0"]
    for mode, layout in VARIANTS:
        if work.removesuffix("_tf32") not in WITHOUT_IMAGES or layout == "nchw":
            yield (f"torch-{mode}-{layout}",
                   [args.python, os.path.join(HERE, "torch_peer.py"), work, mode, layout, "cuda"])


def measure(work, args, cache):
    """What each variant measured, and why others did not."""
    runners, failures = [], []
    for name, command in commands(work, args, cache):
        own = os.path.join(cache, name)
        caches = {"TORCHINDUCTOR_CACHE_DIR": own + "-inductor", "TRITON_CACHE_DIR": own + "-triton"}
        environment = with_cuda(os.environ) if name == "fluid" else caches
        try:
            runners.append(Runner(name, command, environment, ANSWER_SECONDS))
        except RuntimeError as failure:
            failures.append(str(failure))
    return measure_in_turns(runners, args.rounds, failures), failures


def best(rows, mode, figure="ms"):
    return min((row[figure] for name, row in rows.items() if name.startswith(mode)), default=None)


def compare(work, rows):
    """Ratios to PyTorch, where both ran, and which of their targets are missed."""
    _, *limits = WORKS[work]
    pairs = {
        "eager": (best(rows, "fluid"), best(rows, "torch-eager")),
        "compiled": (best(rows, "fluid"), best(rows, "torch-compile")),
        "memory": (best(rows, "fluid", "arena_bytes"), best(rows, "torch", "peak_bytes")),
    }
    ratios = {name: ours / theirs if ours and theirs else None for name, (ours, theirs) in pairs.items()}
    targets = dict(zip(pairs, limits))
    missed = [name for name, target in targets.items()
              if target is not None and (ratios[name] is None or ratios[name] > target)]
    return ratios, targets, missed


def text(number, places):
    return "-" if number is None else f"{number:.{places}f}"


def machine():
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    if shutil.which(query[0]) is None:
        return "unknown"
    return subprocess.run(query, capture_output=True, text=True).stdout.strip() or "unknown"


def percent_of_limit(rows, what):
    """Of the time of Fluid's step, what the GPU needs at least: its arithmetic or its memory."""
    row = rows.get("fluid", {})
    return 100 * row[what] / row["ms"] if what in row else None


def line_of(work, rows, ratios):
    sides = ("fluid", "torch-eager", "torch-compile")
    cells = [text(best(rows, side), 3) for side in sides] + [text(ratio, 2) for ratio in ratios.values()]
    cells.append(" / ".join(text(best(rows, side, "first_s"), 2) for side in sides))
    cells += [text(percent_of_limit(rows, what), 0) for what in ("arithmetic_ms", "memory_ms")]
    return "| " + " | ".join([WORKS[work][0], *cells]) + " |"


def write(results, path):
    """Over what the file says of the same works; its others stay."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            results = results | {"works": json.load(f).get("works", {}) | results["works"]}
    with open(path + ".temporary", "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)
    os.replace(path + ".temporary", path)


def read_libraries():
    """So that no side is the first to bring CUDA's libraries from the disk."""
    for folder in cuda_folders():
        for path in glob.glob(os.path.join(folder, "*.so*")):
            with open(path, "rb") as library:
                while library.read(1 << 24):
                    pass


def main():
    args, works = arguments(WORKS)
    read_libraries()
    results, missed = {"gpu": machine(), "rounds": args.rounds, "works": {}}, []
    print("| work | Fluid ms | eager ms | compiled ms | to eager | to compiled | memory "
          "| first step s: Fluid / eager / compiled | % of FLOP/s | % of bytes/s |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for work in works:
        with tempfile.TemporaryDirectory() as cache:
            rows, failures = measure(work, args, cache)
        ratios, targets, over = compare(work, rows)
        missed += [f"{work} ({name})" for name in over]
        results["works"][work] = {"rows": rows, "ratios": ratios, "targets": targets, "failures": failures}
        print(line_of(work, rows, ratios), flush=True)
        for failure in failures:
            print(f"{work}: {failure}", file=sys.stderr, flush=True)
        if args.out:
            write(results, args.out)
    return exit_code(missed)


if __name__ == "__main__":
    sys.exit(main())
