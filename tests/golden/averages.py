"""Averages of the parameters by PyTorch's AveragedModel, and lookahead by its paper's algorithm, in f64.

    python tests/golden/averages.py > tests/golden/averages.json

Linear regression on other samples in each step, as in optimizers.py. `rate` is the learning rate.
"""

import json

import torch
from torch.optim.swa_utils import AveragedModel

from training import uniform

SAMPLES, FEATURES, UNITS, STEPS = 6, 3, 2, 30
SHOWN = (1, 4, 5, 6, 12, 30)
torch.set_default_dtype(torch.float64)


def numbers(stream, *shape):
    return torch.tensor(2 * uniform(stream, torch.Size(shape).numel()).reshape(shape) - 1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(numbers(0, FEATURES, UNITS))
        self.b = torch.nn.Parameter(numbers(1, UNITS))


def rounded(net):
    return [float(f"{v:.13g}") for p in (net.w, net.b) for v in p.detach().flatten().tolist()]


def train(make, after_step):
    net = Net()
    optimizer = make(net.parameters())
    for step in range(STEPS):
        x, y = numbers(100 + step, SAMPLES, FEATURES), numbers(200 + step, SAMPLES, UNITS)
        optimizer.zero_grad()
        (x @ net.w + net.b - y).square().mean().backward()
        optimizer.step()
        after_step(net, step + 1)


def swa(make, start, every):
    shown, average = {}, AveragedModel(Net())

    def after_step(net, updates):
        if updates >= start and (updates - start) % every == 0:
            average.update_parameters(net)
        if updates in SHOWN:
            shown[updates] = rounded(average.module if updates >= start else net)

    train(make, after_step)
    return shown


def lookahead(make, every, alpha):
    """Zhang et al., "Lookahead optimizer: k steps forward, 1 step back", 2019, algorithm 1."""
    shown, slow = {}, [p.detach().clone() for p in Net().parameters()]

    def after_step(net, updates):
        with torch.no_grad():
            if updates % every == 0:
                for s, p in zip(slow, net.parameters()):
                    s += alpha * (p - s)
                    p.copy_(s)
        if updates in SHOWN:
            shown[updates] = rounded(net)

    train(make, after_step)
    return shown


OPTIMIZERS = {"adam": lambda p: torch.optim.Adam(p, lr=0.1),
              "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)}
CASES = [("adam", "swa", {"start": 1, "every": 1}), ("momentum", "swa", {"start": 5, "every": 1}),
         ("adam", "swa", {"start": 6, "every": 3}), ("adam", "lookahead", {"every": 5, "alpha": 0.5}),
         ("momentum", "lookahead", {"every": 3, "alpha": 0.8}), ("momentum", "lookahead", {"every": 1, "alpha": 0.25})]


def main():
    cases = [json.dumps({"optimizer": optimizer, "around": around, "settings": settings,
                         "params": (swa if around == "swa" else lookahead)(OPTIMIZERS[optimizer], **settings)})
             for optimizer, around, settings in CASES]
    print('{"made_by": "tests/golden/averages.py", "torch": "%s", "cases": [\n%s]}'
          % (torch.__version__, ",\n".join(cases)))


main()
