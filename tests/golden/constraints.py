"""Parameters under L1 and L2 penalties and a bound of the norm, after updates by PyTorch's SGD in f64.

    python tests/golden/constraints.py > tests/golden/constraints.json

Linear regression on other samples in each step, as in optimizers.py. torch.renorm bounds the norm of the weights
into each output after each update.
"""

import json

import torch

from training import uniform

SAMPLES, FEATURES, UNITS, STEPS = 6, 3, 2, 30
SHOWN = (1, 2, 10, 30)
torch.set_default_dtype(torch.float64)
CASES = [{"l1": 0.02}, {"l2": 0.05}, {"l1": 0.01, "l2": 0.03}, {"max_norm": 0.5}, {"l2": 0.01, "max_norm": 0.3}]


def numbers(stream, *shape):
    return torch.tensor(2 * uniform(stream, torch.Size(shape).numel()).reshape(shape) - 1)


def run(options):
    w, b = torch.nn.Parameter(numbers(0, FEATURES, UNITS)), torch.nn.Parameter(numbers(1, UNITS))
    optimizer = torch.optim.SGD([w, b], lr=0.1, momentum=0.9)
    shown = {}
    for step in range(STEPS):
        x, y = numbers(100 + step, SAMPLES, FEATURES), numbers(200 + step, SAMPLES, UNITS)
        loss = (x @ w + b - y).square().mean()
        loss = loss + options.get("l1", 0) * w.abs().sum() + options.get("l2", 0) * w.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if "max_norm" in options:
            with torch.no_grad():
                w.copy_(torch.renorm(w, 2, 1, options["max_norm"]))
        if step + 1 in SHOWN:
            shown[step + 1] = [float(f"{v:.13g}") for p in (w, b) for v in p.detach().flatten().tolist()]
    return {"options": options, "params": shown}


def main():
    cases = [json.dumps(run(options)) for options in CASES]
    print('{"made_by": "tests/golden/constraints.py", "torch": "%s", "cases": [\n%s]}'
          % (torch.__version__, ",\n".join(cases)))


main()
