"""Compares generated kernels of matrix products with oneDNN's.

Each shape runs in a process with library kernels and in one without, in turns. A time is the lower quartile over the
steps of the product's call, and the median of these over the processes. "MxKxN_ta" multiplies a transposed left
operand, "_tb" a transposed right operand, and "BxMxKxN" B pairs of matrices.
"""

import json
import math
import os
import statistics
import subprocess
import tempfile

SHAPES = {
    "large": ("512x512x512", "1024x1024x1024", "2048x2048x2048", "4096x1024x256", "1024x4096x256_ta",
              "1024x1024x1024_tb", "1024x1024x1024_ta"),
    "layers": ("64x784x512", "128x512x512", "256x1024x1024", "1024x384x1536", "1024x1536x384", "1024x384x1152_tb",
               "384x1024x1536_ta", "256x367x367"),
    "few rows": ("1x256x1024", "4x256x1024", "8x256x1024", "16x256x1024", "32x256x1024", "32x1024x256", "64x256x1024",
                 "32x256x1024_tb", "33x256x1000"),
    "odd": ("127x127x127", "257x311x509", "61x1009x67", "13x17x19", "100x200x10"),
    "batched": ("24x256x64x256_tb", "24x256x256x64", "64x32x32x32", "128x16x64x16", "512x8x8x8", "64x27x16x27_tb"),
}


def milliseconds(build, work, cache):
    """Returns the time of the product in a step of `work`."""
    run = subprocess.run([os.path.join(build, "fluid_bench"), work, "--kernels", cache], check=True,
                         stdout=subprocess.PIPE, text=True)
    return sum(call["ms"] for call in json.loads(run.stdout)["calls"] if "matmul" in call["ops"])


def flops(shape):
    return 2 * math.prod(int(extent) for extent in shape.split("_")[0].split("x"))


def report(args):
    """Prints the table. Returns the results for the JSON file."""
    results = {}
    print("| class | product | generated us | GFLOP/s | oneDNN us | GFLOP/s | ratio |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        for kind, shapes in SHAPES.items():
            for shape in shapes:
                times = {"generated": [], "library": []}
                for _ in range(args.rounds):
                    for name, suffix in (("generated", "_generated"), ("library", "")):
                        times[name].append(milliseconds(args.build, f"product_{shape}{suffix}", cache))
                ms = {name: statistics.median(each) for name, each in times.items()}
                results[shape] = ms | {"ratio": ms["generated"] / ms["library"]}
                rates = {name: flops(shape) / each / 1e6 for name, each in ms.items()}
                print(f"| {kind} | {shape} | {1e3 * ms['generated']:.1f} | {rates['generated']:.0f} "
                      f"| {1e3 * ms['library']:.1f} | {rates['library']:.0f} | {results[shape]['ratio']:.2f} |",
                      flush=True)
    return results
