"""PyTorch's ReduceLROnPlateau over written sequences of metrics.

    python tests/golden/plateau.py > tests/golden/plateau.json
"""

import json
import random

import torch

RUNS = [
    {"lr": 0.1, "factor": 0.1, "patience": 3, "threshold": 1e-4, "cooldown": 0, "min_lr": 0.0},
    {"lr": 1e-4, "factor": 0.5, "patience": 1, "threshold": 0.05, "cooldown": 2, "min_lr": 2e-6},
    {"lr": 1e-6, "factor": 0.1, "patience": 0, "threshold": 1e-4, "cooldown": 0, "min_lr": 0.0},
    {"lr": 0.1, "mode": "max", "factor": 0.5, "patience": 1, "threshold": 0.05},
    {"lr": 0.1, "mode": "max", "factor": 0.5, "patience": 2, "threshold": 0.02,
     "threshold_mode": "abs", "cooldown": 1, "min_lr": 0.01},
    {"lr": 0.1, "mode": "min", "factor": 0.25, "patience": 1, "threshold": 0.05,
     "threshold_mode": "abs"},
    {"lr": 0.1, "mode": "min", "factor": 0.5, "patience": 2, "threshold": 3.0,
     "threshold_mode": "abs", "sign": -30},
    {"lr": 0.1, "mode": "max", "factor": 0.5, "patience": 1, "threshold": 0.1, "sign": -1},
]
EPOCHS = 40


def run(settings, seed):
    chance = random.Random(seed)
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=settings["lr"])
    rules = {k: v for k, v in settings.items() if k not in ("lr", "sign")}
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **rules)
    epochs = []
    for epoch in range(EPOCHS):
        metric = round(1 / (1 + 0.3 * epoch) + 0.2 * chance.random(), 3)
        if settings.get("mode") == "max":
            metric = round(1 - metric, 3)
        metric = round(metric * settings.get("sign", 1), 3)
        if epoch in (0, 17):
            metric = float("nan")
        optimizer.step()
        scheduler.step(metric)
        epochs.append([str(metric), optimizer.param_groups[0]["lr"]])
    return {"settings": {k: v for k, v in settings.items() if k != "sign"}, "epochs": epochs}


def main():
    runs = [run(settings, seed) for seed, settings in enumerate(RUNS)]
    rows = ",\n".join(json.dumps(r) for r in runs)
    print(f'{{"torch": "{torch.__version__}", "runs": [\n{rows}\n]}}')


main()
