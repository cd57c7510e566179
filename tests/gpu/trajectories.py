"""Networks trained a few steps on both places, in several precisions, whose losses are compared.

Two computations of one step differ by roundings, which later steps make larger: by how much, the CPU
shows, whose run in the same precision is compared with its own in f64. A GPU's run may lie FACTOR
times as far from f64, or as far as a few roundings of the precision, whichever is more. That says
something where a network learns more than it may be off by: a run that stays at its first loss must be
LEARNS times farther off. The networks see the same four images at every step, at rates at which their
losses fall steadily.
"""

import json
import math
import os
import random

FACTOR = 10
LEARNS = 4
LEAST = {"f32": 1e-4, "bf16": 2**-6, "f16": 2**-9}
MODES = {  # flags, and what they round to
    "f32": ([], "f32"),
    "bf16 o1": (["--amp", "o1", "--amp-dtype", "bf16"], "bf16"),
    "bf16 o2": (["--amp", "o2", "--amp-dtype", "bf16"], "bf16"),
    "f16 o1": (["--amp", "o1", "--amp-dtype", "f16"], "f16"),
    "f16 o2": (["--amp", "o2", "--amp-dtype", "f16"], "f16"),
}
CIFAR10 = "cifar10:{}"
# At the examples' own rates ResNet-18 leaves its f64 run by a factor of ten every other step, whatever
# computes it, and AlexNet learns nothing for long: then nothing could be said.
NETWORKS = {
    "resnet18": ["--data", CIFAR10, "--batch", "4", "--lr", "1e-4"],
    "alexnet_cifar10": ["--data", CIFAR10, "--batch", "4", "--lr", "3e-5"],
    "mnist_cnn": ["--data", "digits?limit=4", "--batch", "4", "--lr", "0.01"],
}
LARGE = ("resnet18", "alexnet_cifar10")  # the other one is for hosts that stand in for a GPU
STEPS = 50


def write_cifar10(folder, records=4):
    """Images in the form of CIFAR-10's: each class has its own 4 x 4 colours, below noise."""
    numbers = random.Random(1)
    os.makedirs(folder, exist_ok=True)
    colours = [numbers.randbytes(48) for _ in range(10)]
    with open(os.path.join(folder, "data_batch_1.bin"), "wb") as f:
        for i in range(records):
            noise = numbers.randbytes(3072)
            pixels = bytes((3 * colours[i % 10][p // 1024 * 16 + p % 1024 // 256 * 4 + p % 32 // 8] + noise[p]) // 4
                           for p in range(3072))
            f.write(bytes([i % 10]) + pixels)


def losses(path):
    """Of each step; infinite where the log has none, as JSON knows no such number."""
    with open(path, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    found = [line["loss"] for line in lines if "event" not in line]
    return [math.inf if loss is None else loss for loss in found]


def apart(a, b):
    """By what part of `b` they differ; infinite where either is not finite."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return 0.0 if a == b else abs(a - b) / abs(b) if b else math.inf


def farthest(found, expected, exact, least):
    """By how much of what is allowed, at most, and at which step, `found` leaves `exact`: up to 1 is
    good. `expected` is the other place's run in the same precision; where that is not finite, nothing is
    good."""
    drift, worst = least, (0.0, 0)
    for step, (a, b, true) in enumerate(zip(found, expected, exact, strict=True)):
        drift = max(drift, FACTOR * apart(b, true))
        part = apart(a, true) / drift if math.isfinite(drift) else math.inf
        worst = max(worst, (part, step))
    return worst


def refusal_of_no_learning(expected, exact, least):
    """How many times farther from `exact` than is allowed a run is, at most, that stays where it begins."""
    return farthest([exact[0]] * len(exact), expected, exact, least)[0]
