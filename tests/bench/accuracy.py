"""Trains examples of Fluid and the same networks in PyTorch, and compares validation metrics.

    python accuracy.py BUILD_DIR DATA_DIR [--only WORK,...] [--steps N] [--out FILE.json]
                       [--logs DIR]

BUILD_DIR holds fluidrun and its examples. Both sides compute in f32 on THREADS threads, PyTorch
eager. They start from the same parameters and read the same samples in the same order: PyTorch
loads the parameters that fluidrun initialises, and repeats the shuffles of Fluid's reader. The loss
of the first step shows that this holds; the script fails if the two losses differ. Optimizer,
schedule, clipping and the normalisation of the data are those of the Fluid program. No network has
dropout.

--steps stops each work early, to check the script. --logs keeps Fluid's log and PyTorch's losses of
each step. --out merges each result into FILE.json as soon as its work is done. Exits with 1 when a
difference is larger than its bound.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from bench_works import cpu_name, write
from fluid_data import feed, housing_data, image_data, shuffled, text_data
from json_file import write_json
from runner import arguments, exit_code

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from torch_networks import CharGpt, LstmText, VitTiny, resnet50

THREADS = 2
SEED = 0
COMPARED_STEPS = 20  # the first steps, whose losses are compared
FIRST_LOSS_TOLERANCE = 1e-4  # relative, of the loss of the first step
HOUSE_VALUE_DEVIATION = 115393  # dollars; california_housing normalises house values by it
RESNET_SIDE = 64
# The example's 0.1 is for ImageNet. Here it raises the loss to 40, and two f32 runs end at different losses.
RESNET_RATE = 0.01


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


class FluidProgram:
    """A program that fluidrun trains, by name or file."""

    def __init__(self, fluidrun, program):
        self.fluidrun, self.program = fluidrun, program
        ops = json.loads(run(fluidrun, "show", program, "--format", "json"))["graphs"][0]["ops"]
        self.parameters = [op["symbol"] for op in ops if op["op"] == "param"]
        self.feeds = {op["symbol"]: op.get("attrs", {}) for op in ops if op["op"] == "data"}
        self.recipe = next(op["attrs"] for op in ops if op["op"] == "train")

    def train(self, data, batch, *options):
        run(self.fluidrun, "train", self.program, "--data", data.spec, "--batch", str(batch),
            "--seed", str(SEED), "--threads", str(THREADS), "--place", "cpu", *options)

    def initial_parameters(self, data, batch, file):
        """The initial parameters: fluidrun saves them after a step with a tiny learning rate."""
        self.train(data, batch, "--max-steps", "1", "--lr", "1e-30", "--save", file)
        with open(file, "rb") as f:
            header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
            values = np.frombuffer(f.read(), np.float32)
        ranges = {name: header[name]["data_offsets"] for name in self.parameters}
        return [torch.tensor(values[begin // 4 : end // 4]).reshape(header[name]["shape"])
                for name, (begin, end) in ranges.items()]


def train_fluid(program, data, batch, epochs, steps, log):
    """Returns the losses of the steps, the outputs of the last validation, and the minutes."""
    start = time.monotonic()
    program.train(data, batch, "--val", data.spec, "--epochs", str(epochs),
                  "--max-steps", str(steps), "--log-json", log)
    minutes = (time.monotonic() - start) / 60
    with open(log) as f:
        lines = [json.loads(line) for line in f]
    losses = [line["loss"] for line in lines if "event" not in line]
    return losses, [line for line in lines if line.get("event") == "validation"][-1], minutes


def load(model, values):
    """Loads parameters in the order in which Fluid records them and `model` registers its own."""
    own = [(layer, p) for layer in model.modules() for p in layer.parameters(recurse=False)
           if p.requires_grad]
    for (layer, p), value in zip(own, values, strict=True):
        if isinstance(layer, nn.Linear) and p.dim() == 2:
            value = value.T  # Fluid holds [in, out]
        if p.shape != value.shape:
            raise RuntimeError(f"{layer}: Fluid's parameter has the shape {tuple(value.shape)}")
        p.data = value.contiguous()


def optimizer_of(recipe, parameters):
    if recipe["optimizer"] == "momentum":
        return torch.optim.SGD(parameters, recipe["lr"], recipe["momentum"],
                               nesterov=recipe["nesterov"], weight_decay=recipe["weight_decay"])
    adam = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[recipe["optimizer"]]
    return adam(parameters, recipe["lr"], (recipe["beta1"], recipe["beta2"]), recipe["eps"],
                recipe["weight_decay"])


def rate(recipe, update):
    """The learning rate of an update, as the schedules of ops/optim compute it."""
    setting = lambda name: recipe["schedule_" + name]
    if recipe.get("schedule") == "step":
        return recipe["lr"] * setting("factor") ** (update // setting("every"))
    if recipe.get("schedule") != "cosine":
        return recipe["lr"]
    if update < setting("warmup"):
        return recipe["lr"] * (update + 1) / setting("warmup")
    done = min((update - setting("warmup")) / (setting("steps") - setting("warmup")), 1)
    return setting("end") + (recipe["lr"] - setting("end")) * (1 + math.cos(math.pi * done)) / 2


def loss_of(output, target):
    if target.is_floating_point():
        return F.mse_loss(output, target)
    return F.cross_entropy(output.flatten(0, -2), target.flatten())


def batches(columns, batch, order):
    for index in torch.from_numpy(order).split(batch):
        yield [column[index] for column in columns]


@torch.inference_mode()
def evaluate(model, columns, batch):
    """Loss and accuracy over all samples."""
    model.eval()
    loss = hits = 0
    for x, target in batches(columns, batch, np.arange(len(columns[0]))):
        output = model(x)
        loss += loss_of(output, target).item() * len(x)
        hits += (output.argmax(-1) == target).sum().item()
    model.train()
    return {"loss": loss / len(columns[0]), "accuracy": hits / len(columns[0])}


def update(model, optimizer, recipe, step, loss):
    for group in optimizer.param_groups:
        group["lr"] = rate(recipe, step)
    optimizer.zero_grad()
    loss.backward()
    if "clip_global_norm" in recipe:
        nn.utils.clip_grad_norm_(model.parameters(), recipe["clip_global_norm"])
    optimizer.step()


def train_torch(model, program, data, batch, epochs, steps):
    """Validates after each epoch, as Fluid does. Returns what train_fluid() does."""
    start = time.monotonic()
    train, validation = ([feed(column, program.feeds[name]) for name, column in columns.items()]
                         for columns in (data.train, data.validation))
    optimizer = optimizer_of(program.recipe, [p for p in model.parameters() if p.requires_grad])
    losses, metrics = [], {}
    for epoch in range(epochs):
        for x, target in batches(train, batch, shuffled(len(train[0]), SEED, epoch)):
            if len(losses) == steps:
                break
            loss = loss_of(model(x), target)
            update(model, optimizer, program.recipe, len(losses), loss)
            losses.append(loss.item())
        metrics = evaluate(model, validation, batch)
    return losses, metrics, (time.monotonic() - start) / 60


@dataclass
class Metric:
    name: str
    of: Callable  # maps the outputs "loss" and "accuracy" to the metric
    bound: float  # the largest difference
    relative: bool = False  # whether the difference is in percent of PyTorch's value

    def difference(self, fluid, peer):
        return 100 * abs(fluid / peer - 1) if self.relative else abs(fluid - peer)


LOSS = Metric("loss", lambda outputs: outputs["loss"], 0.02)
ACCURACY = Metric("accuracy, %", lambda outputs: 100 * outputs["accuracy"], 2)
ERROR = Metric("RMSE, dollars; difference in %",
               lambda outputs: HOUSE_VALUE_DEVIATION * math.sqrt(outputs["loss"]), 2, relative=True)


def housing_net():
    layer = lambda features: [nn.Linear(features, 64), nn.ReLU()]
    return nn.Sequential(*layer(8), *layer(64), *layer(64), nn.Linear(64, 1))


def lstm_net():
    """PyTorch adds a second bias to each gate, which stays zero here: Fluid has one."""
    net = LstmText(2, 256)
    for name, p in net.named_parameters():
        if "bias_hh" in name:
            p.requires_grad_(False).zero_()
    return net


def resnet_net():
    resize = nn.Upsample((RESNET_SIDE, RESNET_SIDE), mode="bilinear", align_corners=False)
    return nn.Sequential(resize, resnet50())


def resnet_program(fluidrun, scratch):
    """resnet50 as text: images resized to RESNET_SIDE instead of 224, learning rate RESNET_RATE."""
    text = run(fluidrun, "show", "resnet50").replace("output = [224]", f"output = [{RESNET_SIDE}]")
    text = text.replace("lr = 0.1,", f"lr = {RESNET_RATE},")
    smaller = lambda m: f"[?, {m[1]}" + 2 * f", {int(m[2]) * RESNET_SIDE // 224}" + "]"
    path = os.path.join(scratch, "resnet50.fir")
    with open(path, "w") as f:
        f.write(re.sub(r"\[\?, (\d+), (224|112|56|28|14|7), \2\]", smaller, text))
    return path


@dataclass
class Work:
    text: str
    metric: Metric
    data: Callable  # maps DATA_DIR and a folder for files to Data
    net: Callable
    batch: int
    epochs: int = 0
    steps: int = 0  # instead of epochs
    program: Callable = None  # maps fluidrun and a folder for files to a program file


WORKS = {
    "california_housing": Work("MLP 64-64-64, 40 epochs of 16,512 districts", ERROR,
                               housing_data, housing_net, 64, epochs=40),
    "lstm_text": Work("LSTM, 2 layers of 256, 500 steps of 32 x 128 bytes", LOSS,
                      text_data(128), lstm_net, 32, steps=500),
    "char_gpt": Work("GPT, 6 layers of 384, 500 steps of 4 x 256 bytes", LOSS,
                     text_data(256), lambda: CharGpt(6, 6, 384, 256), 4, steps=500),
    "vit_tiny": Work("ViT-Tiny, 3 epochs of 3,000 images, 32 x 32", ACCURACY,
                     image_data, VitTiny, 64, epochs=3),
    "resnet50": Work("ResNet-50, 3 epochs of 3,000 images, resized to 64 x 64", ACCURACY,
                     image_data, resnet_net, 32, epochs=3, program=resnet_program),
}


def first_losses_difference(fluid, peer):
    """The largest relative difference of the first losses. Raises if the first of them differ."""
    differences = [abs(a / b - 1) for a, b in zip(fluid, peer)][:COMPARED_STEPS]
    if differences[0] > FIRST_LOSS_TOLERANCE:
        raise RuntimeError(f"samples or parameters differ: the first loss is {fluid[0]}, "
                           f"PyTorch's is {peer[0]}")
    return max(differences)


def train_both(work, fluidrun, name, args, log):
    """Returns the number of steps, and what train_fluid() and train_torch() return."""
    with tempfile.TemporaryDirectory() as scratch:
        program = work.program(fluidrun, scratch) if work.program else name
        program = FluidProgram(fluidrun, program)
        data, model = work.data(args.data, scratch), work.net()
        initial = os.path.join(scratch, "initial.safetensors")
        load(model, program.initial_parameters(data, work.batch, initial))
        steps_per_epoch = math.ceil(len(next(iter(data.train.values()))) / work.batch)
        steps = min(work.steps or work.epochs * steps_per_epoch, args.steps)
        plan = data, work.batch, math.ceil(steps / steps_per_epoch), steps
        fluid = train_fluid(program, *plan, log)
        return steps, fluid, train_torch(model, program, *plan)


def compare(name, args, logs):
    """Trains both sides. Returns the row for the JSON file."""
    work, fluidrun = WORKS[name], os.path.join(args.build, "fluidrun")
    steps, fluid, peer = train_both(work, fluidrun, name, args,
                                    os.path.join(logs, name + ".fluid.json"))
    (losses, outputs, minutes), (peer_losses, peer_outputs, peer_minutes) = fluid, peer
    write_json(peer_losses, os.path.join(logs, name + ".torch.json"))
    metric, peer_metric = work.metric.of(outputs), work.metric.of(peer_outputs)
    return {"metric": work.metric.name, "fluid": metric, "torch": peer_metric,
            "difference": work.metric.difference(metric, peer_metric),
            "bound": work.metric.bound, "steps": steps,
            "first_losses_difference": first_losses_difference(losses, peer_losses),
            "fluid_minutes": minutes, "torch_minutes": peer_minutes,
            "torch_version": torch.__version__, "cpu": cpu_name(), "threads": THREADS}


def main():
    args, works = arguments(WORKS, second="data", rounds=0, logs={},
                            steps={"type": int, "default": sys.maxsize})
    torch.set_num_threads(THREADS)
    if args.logs:
        os.makedirs(args.logs, exist_ok=True)
    missed = []
    print("| work | metric | Fluid | PyTorch | difference | bound | | minutes, both |")
    print("|---|---|---|---|---|---|---|---|")
    for name in works:
        with tempfile.TemporaryDirectory() as unkept:
            row = compare(name, args, args.logs or unkept)
        within = row["difference"] <= row["bound"]
        missed += [] if within else [name]
        print(f"| {WORKS[name].text} | {row['metric']} | {row['fluid']:.6g} | {row['torch']:.6g} "
              f"| {row['difference']:.4f} | {row['bound']} | {'ok' if within else 'MISSED'} "
              f"| {row['fluid_minutes']:.1f}, {row['torch_minutes']:.1f} |", flush=True)
        if args.out:
            write({"works": {name: row}}, args.out)
    return exit_code(missed)


if __name__ == "__main__":
    sys.exit(main())
