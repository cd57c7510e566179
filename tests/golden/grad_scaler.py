"""PyTorch's GradScaler over a schedule of steps, some of which overflow.

    python tests/golden/grad_scaler.py > tests/golden/grad_scaler.json
"""

import json
import random

import torch

STEPS = 60
INITIAL = 1024.0  # so low that the scale falls below 1
GROWTH_INTERVAL = 5


def main():
    chance = random.Random(7)
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=INITIAL, growth_interval=GROWTH_INTERVAL)
    steps = []
    for _ in range(STEPS):
        overflows = chance.random() < 0.25
        loss = (weight * (float("inf") if overflows else 1.0)).sum()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        steps.append({"overflows": overflows, "scale": scaler.get_scale(),
                      "good_steps": scaler._get_growth_tracker()})
    print(json.dumps({"torch": torch.__version__, "initial": INITIAL,
                      "growth_interval": GROWTH_INTERVAL, "steps": steps}, indent=0))


main()
