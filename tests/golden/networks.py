"""First losses of larger networks in PyTorch, in f64: what frontend/examples' are compared with.

    python tests/golden/networks.py > tests/golden/networks.json

The networks are narrow and the images small; dropout is off. Weights, biases and data come from
training.py's `uniform`, batch normalisation starts as PyTorch's does.
"""

import json

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from golden_parameters import set_golden_parameters
from torch_networks import alexnet, resnet18
from training import uniform

STEPS, BATCH = 5, 4
MEAN, STD = [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]


def losses(net, side, make_optimizer):
    net.double().train()
    set_golden_parameters(net)
    optimizer = make_optimizer(net.parameters())
    out = []
    for step in range(STEPS):
        label = torch.tensor((10 * uniform(200 + step, BATCH)).astype(np.int64))
        pixels = np.floor(256 * uniform(300 + step, BATCH * 3 * side * side))
        x = torch.tensor(pixels.reshape(BATCH, 3, side, side) * float(np.float32(1 / 255)))
        channels = lambda v: torch.tensor(v, dtype=torch.float64)[:, None, None]
        loss = F.cross_entropy(net((x - channels(MEAN)) / channels(STD)), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(float(loss.detach()))
    return out


def main():
    torch.set_num_threads(1)
    sgd = lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=5e-4)
    enlarged = nn.Sequential(nn.Upsample(131, mode="bilinear"), alexnet(width=4, dropout=0))
    golden = {
        "made_by": "tests/golden/networks.py",
        "torch": torch.__version__,
        "resnet18": losses(resnet18(8), 16, sgd),
        "alexnet": losses(enlarged, 8, lambda p: torch.optim.AdamW(p, 1e-4)),
    }
    print("{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in golden.items()) + "\n}")


main()
