"""Compares the images per second of Fluid's readers and PyTorch's DataLoader, on the same image folder and cores.

    image_loading.py --fluidrun build/release/fluidrun --data ../shared/data --scratch /tmp/images [--out FILE]

Both decode JPEG images of about 400 x 300, take a random part of 224 x 224, mirror it with probability 0.5, and gather
batches of u8, with --workers threads or processes. The images are CIFAR-10's, enlarged and written to --scratch. Rounds
alternate. Exits with 1 where the median ratio is below --target. Needs torch, torchvision, PIL and numpy.
"""

import argparse
import gzip
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.transforms import v2

from bench_works import cpu_name, write

BATCH = 32


def write_images(data, folder, count):
    """Writes `count` images of about 400 x 300 to folder/CLASS/."""
    packed = next((data / "cifar10").glob("data_batch_1*"))
    records = numpy.frombuffer(gzip.decompress(packed.read_bytes()), numpy.uint8).reshape(-1, 3073)
    random = numpy.random.default_rng(1)
    for i, record in enumerate(records[:count]):
        path = folder / f"class{record[0]}" / f"{i:05}.jpg"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(record[1:].reshape(3, 32, 32).transpose(1, 2, 0))
        size = (int(random.integers(380, 420)), int(random.integers(280, 320)))
        pixels = numpy.asarray(image.resize(size, Image.Resampling.BICUBIC), numpy.int16)
        noise = random.integers(-8, 9, pixels.shape)  # photographs have details that enlarged images lack
        Image.fromarray((pixels + noise).clip(0, 255).astype(numpy.uint8)).save(path, quality=90)


def fluid_rate(args, spec):
    command = [args.fluidrun, "data", spec, "--rate", "--batch", str(BATCH), "--workers", str(args.workers)]
    return float(re.search(r"([\d.]+) samples/s", subprocess.check_output(command, text=True)).group(1))


def torch_loader(args, folder):
    transform = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()])
    return DataLoader(
        datasets.ImageFolder(folder, transform),
        batch_size=BATCH,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
    )


def torch_rate(loader):
    """Images per second over an epoch, after the workers have started."""
    start = time.perf_counter()
    count = sum(len(labels) for _, labels in loader)
    return count / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fluidrun", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--target", type=float, default=1.3)
    parser.add_argument("--out")
    args = parser.parse_args()
    write_images(args.data, args.scratch, args.images)
    torch.set_num_threads(1)
    loader = torch_loader(args, args.scratch)
    torch_rate(loader)
    rates = []
    for _ in range(args.rounds):
        rates.append((fluid_rate(args, f"folder:{args.scratch}|resized_crop=224|flip"), torch_rate(loader)))
        print(f"Fluid {rates[-1][0]:.0f} images/s, PyTorch {rates[-1][1]:.0f} images/s", flush=True)
    fluid, peer = (statistics.median(side) for side in zip(*rates))
    ratio = statistics.median(a / b for a, b in rates)
    print(f"{args.workers} workers: Fluid {fluid:.0f} images/s, PyTorch {peer:.0f} images/s, ratio {ratio:.2f}")
    if args.out:
        figures = {"workers": args.workers, "images_per_second": fluid, "torch": peer, "ratio": ratio}
        write({"cpu": cpu_name(), "image_loading": figures}, args.out)
    sys.exit(ratio < args.target)


if __name__ == "__main__":
    main()
