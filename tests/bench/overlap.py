"""Checks that training overlaps with reading: an epoch takes at most 1.1 times as long as the slower of the two alone.

    overlap.py --fluidrun build/release/fluidrun --data ../shared/data --scratch /tmp/images [--out FILE]

One worker thread reads and one thread computes, so that each has a core. Three runs alternate: reading alone
(`fluidrun data --rate`), training on images that are in memory, and training on images that are read. One case is
bound by its step, the other by its data. Exits with 1 where the median ratio is above --target. Needs torch,
torchvision, PIL and numpy, like image_loading.py.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy

from bench_works import cpu_name, write
from image_loading import BATCH, fluid_rate, write_images

SPEC = "folder:{}|resized_crop=32|flip"
# A linear classifier: its step takes a fraction of the time that its images take to decode.
LINEAR = """program @linear {
  %0 = data "image" {scale = 0.00392156862745098} : f32[?, 3, 32, 32]
  %1 = data "label" : i64[?]
  %2 = flatten(%0) {axis = 1} : f32[?, 3072]
  %3 = param "w" {init = "constant", value = 0.0} : f32[3072, 10]
  %4 = matmul(%2, %3) : f32[?, 10]
  %5 = softmax_cross_entropy(%4, %1) : f32[?]
  %6 = mean(%5) : f32[]
  train(%6) {optimizer = "sgd", lr = 0.01}
  output "loss" = %6
}
"""


def save_in_memory(folder, path):
    """Writes random images of the network's size, as many as the folder has."""
    labels = [int(f.parent.name.removeprefix("class")) for f in sorted(folder.glob("class*/*.jpg"))]
    images = numpy.random.default_rng(0).integers(0, 256, (len(labels), 3, 32, 32), numpy.uint8)
    numpy.savez(path, image=images, label=numpy.array(labels, numpy.int64))


def training_rate(args, program, spec):
    """Images per second of the second epoch."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.json")
        subprocess.run([args.fluidrun, "train", program, "--data", spec, "--batch", str(BATCH), "--drop-last",
                        "--epochs", "2", "--threads", "1", "--workers", "1", "--place", "cpu", "--log-json", log],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(log) as f:
            epochs = [e for e in map(json.loads, f) if e.get("event") == "epoch"]
    first, second = epochs  # "steps" counts from the start of the training
    return BATCH * (second["steps"] - first["steps"]) / second["seconds"]


def measure(args, program, memory):
    """Returns the ratio of the epoch time to the time of the slower part alone, and the three rates."""
    spec = SPEC.format(args.scratch)
    data = fluid_rate(args, spec)
    step = training_rate(args, program, f"npz:{memory}")
    both = training_rate(args, program, spec)
    return min(data, step) / both, {"data": data, "step": step, "training": both}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fluidrun", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--target", type=float, default=1.1)
    parser.add_argument("--out")
    args = parser.parse_args()
    args.workers = 1
    write_images(args.data, args.scratch, args.images)
    with tempfile.TemporaryDirectory() as folder:
        linear, memory = os.path.join(folder, "linear.fir"), os.path.join(folder, "images.npz")
        pathlib.Path(linear).write_text(LINEAR)
        save_in_memory(args.scratch, memory)
        results = {}
        for name, program in {"bound by its step": "mobilenet_v3_small", "bound by its data": linear}.items():
            rounds = [measure(args, program, memory) for _ in range(args.rounds)]
            ratio = statistics.median(r[0] for r in rounds)
            rates = {key: statistics.median(r[1][key] for r in rounds) for key in rounds[0][1]}
            results[name] = {"ratio": ratio, "images_per_second": rates}
            print(f"{name}: data {rates['data']:.0f}, step {rates['step']:.0f}, training {rates['training']:.0f} "
                  f"images/s, time {ratio:.2f} of the slower one alone", flush=True)
    if args.out:
        write({"cpu": cpu_name(), "overlap": results}, args.out)
    sys.exit(any(r["ratio"] > args.target for r in results.values()))


if __name__ == "__main__":
    main()
