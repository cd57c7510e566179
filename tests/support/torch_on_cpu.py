"""Runs a script of PyTorch's that is meant for a GPU where there is none:

    python torch_on_cpu.py SCRIPT [ARGUMENT ...]

"cuda" means the CPU to it, and what torch.cuda says of a GPU is made up.
"""

import functools
import runpy
import sys

import torch


def on_cpu(function):
    """`function`, to which no argument says "cuda"."""
    @functools.wraps(function)
    def call(*arguments, **named):
        named = {name: "cpu" if value == "cuda" else value for name, value in named.items()}
        return function(*("cpu" if isinstance(a, str) and a == "cuda" else a for a in arguments), **named)

    return call


for owner, name in ((torch.Tensor, "to"), (torch.nn.Module, "to"), (torch, "rand"), (torch.amp, "GradScaler")):
    setattr(owner, name, on_cpu(getattr(owner, name)))


class Autocast(torch.autocast):
    __init__ = on_cpu(torch.autocast.__init__)


torch.autocast = Autocast
torch.cuda.reset_peak_memory_stats = lambda: None
torch.cuda.max_memory_allocated = lambda: 1 << 20
torch.cuda.get_device_name = lambda: "a host that stands in for a GPU"
torch.cuda.nccl.version = lambda: (0, 0, 0)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
