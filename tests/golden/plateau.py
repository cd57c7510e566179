"""PyTorch's ReduceLROnPlateau over written sequences of figures.

    python tests/golden/plateau.py > tests/golden/plateau.json
"""

import json
import random

import torch

RUNS = [
    {"lr": 0.1, "factor": 0.1, "patience": 3, "threshold": 1e-4, "cooldown": 0, "min_lr": 0.0},
    {"lr": 1e-4, "factor": 0.5, "patience": 1, "threshold": 0.05, "cooldown": 2, "min_lr": 2e-6},
    {"lr": 1e-6, "factor": 0.1, "patience": 0, "threshold": 1e-4, "cooldown": 0, "min_lr": 0.0},
]
EPOCHS = 40


def run(settings, seed):
    chance = random.Random(seed)
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=settings["lr"])
    rules = {k: v for k, v in settings.items() if k != "lr"}
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **rules)
    epochs = []
    for epoch in range(EPOCHS):
        figure = round(1 / (1 + 0.3 * epoch) + 0.2 * chance.random(), 3)
        if epoch in (0, 17):
            figure = float("nan")
        optimizer.step()
        scheduler.step(figure)
        epochs.append([str(figure), optimizer.param_groups[0]["lr"]])
    return {"settings": settings, "epochs": epochs}


def main():
    runs = [run(settings, seed) for seed, settings in enumerate(RUNS)]
    print(json.dumps({"torch": torch.__version__, "runs": runs}, indent=0))


main()
