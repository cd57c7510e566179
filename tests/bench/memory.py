"""Compares the memory and the step time of training in Fluid's modes and in PyTorch.

Fluid's bytes are those of `fluidrun plan`. PyTorch's bytes are the peak of the tensors in an eager step, as
reported by its MemTracker. PyTorch's time is that of eager steps, NCHW or NHWC, whichever is faster. All
rows of a network are measured in turns.
"""

import json
import os
import re
import subprocess

from runner import Runner, measure_in_turns

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORKS = {"alexnet": ("alexnet_cifar10", 64), "resnet18": ("resnet18", 128)}  # example, batch
MODES = {  # suffix of fluid_bench's workload -> flags of fluidrun
    "": "",
    "_bf16": "--amp o1",
    "_bf16_o2": "--amp o2",
    "_micro2": "--micro-batches 2",
    "_micro4": "--micro-batches 4",
    "_bf16_micro4": "--amp o1 --micro-batches 4",
}
PEERS = {"PyTorch, f32": "", "PyTorch, autocast to bf16": "_bf16"}
LAYOUTS = ("nchw", "nhwc")
ARENA = re.compile(r"^ +arena +([0-9.]+) ([MG])iB", re.MULTILINE)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def planned_mib(build, network, mode):
    example, batch = NETWORKS[network]
    plan = run([os.path.join(build, "fluidrun"), "plan", example, "--batch", str(batch), *MODES[mode].split()])
    size, unit = ARENA.search(plan).groups()
    return float(size) * {"M": 1, "G": 1024}[unit]


def peer(python, network, half, mode, layout):
    return [python, os.path.join(HERE, "torch_peer.py"), network + half, mode, layout]


def peak_mib(python, network, half):
    peaks = [json.loads(run(peer(python, network, half, "memory", layout)))["peak_bytes"]["Total"]
             for layout in LAYOUTS]
    return min(peaks) / 2**20


def milliseconds(args, network, peer_settings):
    """Returns the milliseconds per step of each row, measured in turns."""
    runners = [Runner(flags or "f32", [os.path.join(args.build, "fluid_bench"), network + mode])
               for mode, flags in MODES.items()]
    for name, half in PEERS.items():
        runners += [Runner(name + layout, peer(args.python, network, half, "eager", layout), peer_settings)
                    for layout in LAYOUTS]
    rows = measure_in_turns(runners, min(args.rounds, 3))
    times = {flags or "f32": rows[flags or "f32"]["ms"] for flags in MODES.values()}
    return times | {name: min(rows[name + layout]["ms"] for layout in LAYOUTS) for name in PEERS}


def figures(args, network, peer_settings):
    mib = {flags or "f32": planned_mib(args.build, network, mode) for mode, flags in MODES.items()}
    mib |= {name: peak_mib(args.python, network, half) for name, half in PEERS.items()}
    ms = milliseconds(args, network, peer_settings)
    return {row: {"mib": mib[row], "ms": ms[row]} for row in mib}


def report(args, peer_settings):
    """Prints the table. Returns the results for the JSON file."""
    results = {network: figures(args, network, peer_settings) for network in NETWORKS}
    print("| MiB, ms a step | " + " | ".join(NETWORKS) + " |\n|---|" + "---|" * len(NETWORKS))
    for row in next(iter(results.values())):
        cells = (f"{results[n][row]['mib']:.0f}, {results[n][row]['ms']:.0f}" for n in NETWORKS)
        print(f"| {row} | " + " | ".join(cells) + " |", flush=True)
    return results
