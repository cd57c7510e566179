"""Compares Fluid with PyTorch and ONNX Runtime, measures its start-up time, and prints the tables of
docs/benchmarks.md.

    python bench.py BUILD_DIR PEER_PYTHON [--rounds 5] [--only WORK,...] [--out FILE.json]

Each variant of a workload runs in its own process. After a warm-up, the processes are measured in turns,
`rounds` times (at most 3 times for NETWORKS, whose steps take a second). The script compares the medians.
The fastest peer counts: eager or compiled, NCHW or NHWC, dense or sparse gradients, and ONNX Runtime for the
inference of one image. The workloads `start_up`, `memory`, `kernels`, `products` and `tuning` are those of
start_up.py, memory.py, kernels.py, products.py and tuning.py. --out merges the results into FILE. Exits with 1
when a target is missed; those of `kernels` and `tuning` count with --check only.
"""

import os
import sys
import tempfile

import kernels
import memory
import products
import start_up
import tuning
from bench_works import NETWORKS, TARGETS, cpu_name, measure_machine, write
from runner import Runner, arguments, exit_code, measure_in_turns

HERE = os.path.dirname(os.path.abspath(__file__))
# Otherwise glibc returns large blocks to the system after each step, and PyTorch page-faults on them in the
# next step: 19.7 instead of 12.6 ms for fluid_mnist.
PEER_SETTINGS = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}
VARIANTS = [(mode, layout) for mode in ("eager", "compile") for layout in ("nchw", "nhwc")]
NO_IMAGES = [("eager", "nchw"), ("compile", "nchw")]
OTHER_VARIANTS = {"linear_regression": NO_IMAGES, "char_gpt": NO_IMAGES, "lstm_text": NO_IMAGES,
                  "bert_small_infer": NO_IMAGES,
                  # Sparse gradients of embedding tables, which torch.compile does not support.
                  "dlrm": [*NO_IMAGES, ("eager", "sparse")], "table": [("eager", "sparse")]}


def rounds_of(work, args):
    return min(args.rounds, 3) if work in NETWORKS else args.rounds


def measure(work, args, cache):
    runners = [Runner("fluid", [os.path.join(args.build, "fluid_bench"), work, cache])]
    variants = OTHER_VARIANTS.get(work.removesuffix("_bf16"), VARIANTS)
    if work.endswith("_image") or work == "bert_small_infer":
        variants = [*variants, ("onnxruntime", "nchw")]
    for mode, layout in variants:
        runners.append(Runner(f"{'' if mode == 'onnxruntime' else 'torch-'}{mode}-{layout}",
                              [args.python, os.path.join(HERE, "torch_peer.py"), work, mode, layout],
                              PEER_SETTINGS))
    return measure_in_turns(runners, rounds_of(work, args))


def compare(works, args):
    """Prints the table. Returns the results for the JSON file, and the names of missed targets."""
    results, missed = {}, []
    print("| work | Fluid ms | the peer's best ms | ratio | target | first step s, Fluid / peer |")
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


def main():
    args, works = arguments([*TARGETS, "start_up", "memory", "kernels", "products", "tuning"], **kernels.OPTIONS)

    with tempfile.TemporaryDirectory() as folder:
        rates = measure_machine(args.build, folder)
        return run(args, works, {"cpu": cpu_name(), "threads": os.cpu_count(), "rates": rates})


def run(args, works, results):
    """Runs the works, and adds to `results`. Returns the exit code."""
    missed = []
    compared = [work for work in works if work in TARGETS]
    if compared:
        results["works"], missed = compare(compared, args)
        print()
    if "start_up" in works:
        results["start_up"], too_slow = start_up.report(args.build, args.rounds)
        missed += too_slow
    if "memory" in works:
        results["memory"] = memory.report(args, PEER_SETTINGS)
    if "kernels" in works:
        results["kernels"], slow = kernels.report(args)
        missed += slow if args.check else []
    if "products" in works:
        results["products"] = products.report(args)
    if "tuning" in works:
        results["tuning"], lost = tuning.report(args)
        missed += lost if args.check else []
    if args.out:
        write(results, args.out)
    return exit_code(missed)


sys.exit(main())
