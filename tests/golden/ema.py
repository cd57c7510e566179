"""Averages of the parameters by PyTorch's AveragedModel, in f64.

    python tests/golden/ema.py > tests/golden/ema.json

Linear regression with Adam on the full batch. Numbers come from training.py's `uniform`: the weight from
stream 0, the bias from 1, the inputs from 2 and the targets from 3.
"""

import json

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from training import uniform

SAMPLES, FEATURES, UNITS, STEPS, DECAY = 6, 3, 2, 5, 0.9


def numbers(stream, *shape):
    return torch.tensor(2 * uniform(stream, int(torch.tensor(shape).prod())).reshape(shape) - 1)


def rounded(t):
    return [float(f"{v:.13g}") for v in t.detach().flatten().tolist()]


net = nn.Linear(FEATURES, UNITS).double()
with torch.no_grad():
    net.weight.copy_(numbers(0, FEATURES, UNITS).T)
    net.bias.copy_(numbers(1, UNITS))
x, y = numbers(2, SAMPLES, FEATURES), numbers(3, SAMPLES, UNITS)
average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
steps = []
for _ in range(STEPS):
    optimizer.zero_grad()
    ((net(x) - y) ** 2).mean().backward()
    optimizer.step()
    average.update_parameters(net)
    steps.append({"w": rounded(average.module.weight.T), "b": rounded(average.module.bias)})
print(json.dumps({"made_by": "tests/golden/ema.py", "torch": torch.__version__, "steps": steps,
                  "loss": float(f"{((average(x) - y) ** 2).mean().item():.13g}"), "w": rounded(net.weight.T)}))
