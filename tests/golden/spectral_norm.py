"""Weights, gradients and singular vectors of PyTorch's spectral_norm, in f64.

    python tests/golden/spectral_norm.py > tests/golden/spectral_norm.json

Numbers come from training.py's `uniform`, from the streams below.
"""

import json

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import spectral_norm

from training import uniform

WEIGHT, FACTOR, LEFT, RIGHT = 1, 2, 3, 4
STEPS, LR = 3, 0.1


def numbers(stream, shape):
    return torch.tensor(2 * uniform(stream, int(np.prod(shape))).reshape(shape) - 1)


def rounded(t):
    return [float(f"{v:.13g}") for v in t.detach().flatten().tolist()]


class Weight(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.w = nn.Parameter(numbers(WEIGHT, shape))


def case(shape, dim, iterations, eps=1e-12):
    """SGD steps on the loss sum(factor * w / sigma), then the weight in eval mode."""
    net = Weight(shape)
    spectral_norm(net, "w", n_power_iterations=iterations, eps=eps, dim=dim)
    norm, original = net.parametrizations.w[0], net.parametrizations.w.original
    with torch.no_grad():
        norm._u.copy_(numbers(LEFT, norm._u.shape))
        norm._v.copy_(numbers(RIGHT, norm._v.shape))
    factor = numbers(FACTOR, shape)
    result = {"shape": shape, "dim": dim, "iterations": iterations, "eps": eps, "weights": [], "gradients": []}
    for _ in range(STEPS):
        original.grad = None
        with parametrize.cached():
            result["weights"].append(rounded(net.w))
            (factor * net.w).sum().backward()
        result["gradients"].append(rounded(original.grad))
        with torch.no_grad():
            original -= LR * original.grad
    net.eval()
    return result | {"u": rounded(norm._u), "v": rounded(norm._v), "eval": rounded(net.w)}


print(json.dumps({"made_by": "tests/golden/spectral_norm.py", "torch": torch.__version__,
                  "cases": [case([4, 3], 0, 1), case([3, 2, 2, 2], 0, 2), case([2, 5, 3], 1, 1),
                            case([2, 3], 0, 1, eps=2.0)]}))
