"""Compares steps whose kernels the cost model chooses with steps whose kernels are chosen by timing (--tune)."""

import os
import tempfile

from runner import Runner, measure_in_turns

WORKS = ("seed_cnn", "fluid_mnist", "alexnet", "alexnet_bf16", "resnet18", "resnet18_bf16", "char_gpt",
         "char_gpt_bf16", "lstm_text", "mobilenet_v3_small", "alexnet_image", "resnet18_image", "resnet50_image",
         "mobilenet_v3_small_image", "bert_small_infer")
LARGEST_LOSS = 0.08  # of the step with predicted times, relative to the tuned step


def report(args):
    """Prints the table. Returns the results for the JSON file, and the works where predictions lose too much."""
    results, lost = {}, []
    print("| work | predicted ms | tuned ms | ratio | tuned first step s |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        for work in WORKS:
            rows = measure_in_turns(
                [Runner(name, [os.path.join(args.build, "fluid_bench"), work + suffix, cache])
                 for name, suffix in (("predicted", ""), ("tuned", "_tuned"))], min(args.rounds, 3))
            ratio = rows["predicted"]["ms"] / rows["tuned"]["ms"]
            if ratio > 1 + LARGEST_LOSS:
                lost.append(f"tuning of {work}")
            results[work] = {"rows": rows, "ratio": ratio}
            print(f"| {work} | {rows['predicted']['ms']:.3f} | {rows['tuned']['ms']:.3f} | {ratio:.2f} "
                  f"| {rows['tuned']['first_s']:.1f} |", flush=True)
    return results, lost
