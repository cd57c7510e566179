"""What training the networks takes in Fluid's modes and in PyTorch: bytes, and time a step.

Fluid's bytes are planned by `fluidrun plan`; PyTorch's are the peak of its tensors in an eager step, as
its MemTracker sees them, and its time is that of eager steps, NCHW or NHWC, whichever is faster.
"""

import json
import os
import re
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORKS = {"alexnet": ("alexnet_cifar10", 64), "resnet18": ("resnet18", 128)}  # example, batch
MODES = {  # in fluid_bench's words and in fluidrun's
    "": "",
    "_bf16": "--amp o1",
    "_bf16_o2": "--amp o2",
    "_micro2": "--micro-batches 2",
    "_micro4": "--micro-batches 4",
    "_bf16_micro4": "--amp o1 --micro-batches 4",
}
ARENA = re.compile(r"^ +arena +([0-9.]+) ([MG])iB", re.MULTILINE)


def run(command, lines=None, **settings):
    done = subprocess.run(command, input=lines, capture_output=True, text=True, env=os.environ | settings)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def milliseconds(command, rounds, **settings):
    times = [json.loads(line)["ms"] for line in run(command, "go\n" * rounds, **settings).splitlines()[1:]]
    return statistics.median(times)


def fluid(build, network, mode, rounds, settings):
    example, batch = NETWORKS[network]
    plan = run([os.path.join(build, "fluidrun"), "plan", example, "--batch", str(batch), *MODES[mode].split()])
    size, unit = ARENA.search(plan).groups()
    return {"mib": float(size) * {"M": 1, "G": 1024}[unit],
            "ms": milliseconds([os.path.join(build, "fluid_bench"), network + mode], rounds, **settings)}


def torch(python, network, half, rounds, settings):
    peer = [python, os.path.join(HERE, "torch_peer.py"), network + half]
    peaks = [json.loads(run([*peer, "memory", layout]))["peak_bytes"]["Total"] for layout in ("nchw", "nhwc")]
    times = [milliseconds([*peer, "eager", layout], rounds, **settings) for layout in ("nchw", "nhwc")]
    return {"mib": min(peaks) / 2**20, "ms": min(times)}


def report(args, fluid_settings, peer_settings):
    """Prints the table. The results for the JSON file."""
    print("| MiB, ms a step | " + " | ".join(NETWORKS) + " |\n|---|" + "---|" * len(NETWORKS))
    results = {network: {} for network in NETWORKS}
    rounds = min(args.rounds, 3)
    for row, measure in [
        *((flags or "f32", lambda n, mode=mode: fluid(args.build, n, mode, rounds, fluid_settings))
          for mode, flags in MODES.items()),
        ("PyTorch, f32", lambda n: torch(args.python, n, "", rounds, peer_settings)),
        ("PyTorch, autocast to bf16", lambda n: torch(args.python, n, "_bf16", rounds, peer_settings)),
    ]:
        for network in NETWORKS:
            results[network][row] = measure(network)
        cells = (f"{results[n][row]['mib']:.0f}, {results[n][row]['ms']:.0f}" for n in NETWORKS)
        print(f"| {row} | " + " | ".join(cells) + " |", flush=True)
    return results
