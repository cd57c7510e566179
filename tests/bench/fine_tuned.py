"""Fine-tunes the last block of ResNet-50 from a safetensors file of torchvision, by Fluid and by PyTorch.

    python fine_tuned.py BUILD_DIR DATA_DIR [--weights FILE] [--epochs 2] [--out FILE]

DATA_DIR holds a file data_batch_1* of CIFAR-10, which may be compressed by gzip. FILE is a torchvision ResNet-50;
its head is replaced. Without FILE, PyTorch first trains one on 5/8 of the images, at --side pixels. The other images
are for fine-tuning: 2/3 to train on, 1/3 to validate on. Prints Fluid's options, and the accuracy and the median
seconds of an epoch, without validation, of each side. Fluid's run from random weights shows what the file contributes.
Exits with 1 where Fluid's accuracy is more than 6 points below PyTorch's: twice the standard error of the difference
of two accuracies near 0.5 on 500 images. Needs torch, torchvision, safetensors and numpy.
"""

import argparse
import gzip
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import safetensors.torch
import torch
import torch.nn.functional as F
import torchvision

from bench_works import cpu_name, write
from runner import exit_code

BATCH = 32
LR, MOMENTUM, DECAY = 0.01, 0.9, 1e-4
TRAINED = ("layer4.2.", "fc.")
MAX_DIFFERENCE = 0.06


def records(folder):
    """Returns the labels and images of the file, as rows of bytes."""
    path = next(folder.glob("data_batch_1*"), None)
    if path is None:
        sys.exit(f"error: no file data_batch_1* in {folder}")
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return numpy.frombuffer(content, numpy.uint8).reshape(-1, 3073)


def batches(rows, side, generator=None):
    """Yields normalised images [N, 3, side, side] and labels. Shuffles the rows if there is a generator."""
    mean, std = (torch.tensor(values).reshape(1, 3, 1, 1)
                 for values in ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)))
    order = torch.randperm(len(rows), generator=generator) if generator else torch.arange(len(rows))
    for part in order.split(BATCH):
        chosen = torch.from_numpy(rows[part.numpy()])
        images = (chosen[:, 1:].reshape(-1, 3, 32, 32) / 255 - mean) / std
        yield F.interpolate(images, side, mode="bilinear"), chosen[:, 0].long()


def train_epoch(net, optimizer, rows, side, generator, autocast=False):
    net.train()
    for images, labels in batches(rows, side, generator):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            logits = net(images)
        F.cross_entropy(logits.float(), labels).backward()
        optimizer.step()


def accuracy(net, rows, side):
    net.eval()
    with torch.inference_mode():
        right = sum((net(images).argmax(1) == labels).sum().item() for images, labels in batches(rows, side))
    return right / len(rows)


def sgd(net, lr):
    trained = [p for p in net.parameters() if p.requires_grad]
    return torch.optim.SGD(trained, lr, momentum=MOMENTUM, weight_decay=DECAY)


def pretrain(rows, args, path):
    net = torchvision.models.resnet50(num_classes=10).to(memory_format=torch.channels_last)
    generator = torch.Generator().manual_seed(1)
    optimizer = sgd(net, 0.02)
    for epoch in range(args.pretrain_epochs):
        train_epoch(net, optimizer, rows, args.side, generator, autocast=True)
        print(f"pretraining, epoch {epoch + 1}", file=sys.stderr)
    safetensors.torch.save_model(net.to(memory_format=torch.contiguous_format), path)


def tune_in_pytorch(weights, train, validation, args):
    """Returns the accuracy after the last epoch, and the median seconds of an epoch."""
    net = torchvision.models.resnet50(num_classes=10)
    state = safetensors.torch.load_file(weights)
    net.load_state_dict({k: v for k, v in state.items() if not k.startswith("fc.")}, strict=False)
    for name, p in net.named_parameters():
        p.requires_grad_(name.startswith(TRAINED))
    optimizer, generator, seconds = sgd(net, LR), torch.Generator().manual_seed(1), []
    for _ in range(args.epochs):
        begin = time.perf_counter()
        train_epoch(net, optimizer, train, 224, generator)
        seconds.append(time.perf_counter() - begin)
    return accuracy(net, validation, 224), statistics.median(seconds)


def tune_in_fluid(args, folder, weights):
    """As tune_in_pytorch(). Starts from random weights if `weights` is None."""
    log = folder / "log.json"
    options = ["--batch", str(BATCH), "--epochs", str(args.epochs), "--freeze", "*",
               "--param", "{layer4.2,fc}:train=1", "--lr", str(LR), "--seed", "1", "--place", "cpu"]
    if weights:
        options += ["--params", str(weights), "--params-layout", "pytorch", "--params-map", "fc.*=",
                    "--params-partial"]
        print(shlex.join(options), file=sys.stderr)
    subprocess.run([args.build / "fluidrun", "train", "resnet50", "--data", f"cifar10:{folder}",
                    "--val", f"cifar10:{folder}?split=test", "--log-json", log, *options],
                   check=True, stdout=subprocess.DEVNULL)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    epochs = [e for e in events if e.get("event") == "epoch"]
    validation = [e for e in events if e.get("event") == "validation"]
    steps = epochs[0]["steps"]
    return validation[-1]["accuracy"], statistics.median(steps * e["step_ms"] / 1000 for e in epochs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--weights", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--pretrain-epochs", type=int, default=8)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--out")
    args = parser.parse_args()
    torch.manual_seed(0)
    rows = records(args.data)
    first, last = len(rows) * 5 // 8, len(rows) * 7 // 8
    train, validation = rows[first:last], rows[last:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        train.tofile(folder / "data_batch_1.bin")
        validation.tofile(folder / "test_batch.bin")
        weights = args.weights or folder / "pretrained.safetensors"
        if not args.weights:
            pretrain(rows[:first], args, weights)
        figures = {"Fluid": tune_in_fluid(args, folder, weights),
                   "PyTorch": tune_in_pytorch(weights, train, validation, args),
                   "Fluid, from random weights": tune_in_fluid(args, folder, None)}
    print("| last block of ResNet-50 | accuracy | seconds an epoch |\n|---|---|---|")
    for name, (right, seconds) in figures.items():
        print(f"| {name} | {right:.1%} | {seconds:.0f} |")
    if args.out:
        results = {name: {"accuracy": right, "seconds_per_epoch": seconds}
                   for name, (right, seconds) in figures.items()}
        settings = {"epochs": args.epochs, "images": len(train), "torch": torch.__version__}
        write({"cpu": cpu_name(), "cores": os.cpu_count(), "fine_tuned": settings | results}, args.out)
    lower = figures["PyTorch"][0] - figures["Fluid"][0] > MAX_DIFFERENCE
    sys.exit(exit_code(["accuracy"] if lower else []))


if __name__ == "__main__":
    main()
