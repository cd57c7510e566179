"""Fine-tuning in PyTorch, in f64: parameter groups, frozen layers and frozen batch normalisation.

    python tests/golden/finetune.py > tests/golden/finetune.json

fc0 -> bn0 -> tanh -> fc1 with AdamW on other samples in each step. Numbers come from training.py's `uniform`:
weights and biases from streams 0 to 3, the inputs of step s from 100 + s, the targets from 200 + s.
"""

import json

import torch
import torch.nn.functional as F
from torch import nn

from training import uniform

SAMPLES, FEATURES, HIDDEN, UNITS, STEPS = 6, 3, 4, 2, 6
torch.set_default_dtype(torch.float64)


def numbers(stream, *shape):
    return torch.tensor(2 * uniform(stream, torch.Size(shape).numel()).reshape(shape) - 1)


def set_linear(layer, stream):
    with torch.no_grad():
        layer.weight.copy_(numbers(stream, layer.in_features, layer.out_features).T)
        layer.bias.copy_(numbers(stream + 1, layer.out_features))


def flat(t):
    return t.detach().flatten().tolist()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc0, self.bn0, self.fc1 = nn.Linear(FEATURES, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.Linear(HIDDEN, UNITS)
        set_linear(self.fc0, 0)
        set_linear(self.fc1, 2)

    def forward(self, x):
        return self.fc1(torch.tanh(self.bn0(self.fc0(x))))

    def values(self):
        names = {"fc0.w": self.fc0.weight.T, "fc0.b": self.fc0.bias, "bn0.gamma": self.bn0.weight,
                 "bn0.beta": self.bn0.bias, "bn0.running_mean": self.bn0.running_mean,
                 "bn0.running_var": self.bn0.running_var, "fc1.w": self.fc1.weight.T, "fc1.b": self.fc1.bias}
        return {name: flat(value) for name, value in names.items()}


def train(net, optimizer, forward):
    for step in range(STEPS):
        x, y = numbers(100 + step, SAMPLES, FEATURES), numbers(200 + step, SAMPLES, UNITS)
        optimizer.zero_grad()
        F.mse_loss(forward(x), y).backward()
        optimizer.step()


def groups(freeze_statistics):
    """fc0 is frozen; fc1.w has 10 times the rate and half the decay, fc1.b no decay."""
    net = Net()
    net.bn0.train(not freeze_statistics)
    net.fc0.requires_grad_(False)
    lr, decay = 0.01, 0.1
    optimizer = torch.optim.AdamW([
        {"params": net.bn0.parameters(), "weight_decay": decay},
        {"params": [net.fc1.weight], "lr": 10 * lr, "weight_decay": decay / 2},
        {"params": [net.fc1.bias], "weight_decay": 0}], lr=lr)
    train(net, optimizer, net)
    return net.values()


class LoraLinear(nn.Module):
    """base(x) + alpha / rank * (x A^T) B^T, as peft computes it."""

    def __init__(self, base, rank, alpha, stream):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.a = nn.Parameter(numbers(stream, base.in_features, rank).T)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.a), self.b)


def lora():
    """Adapters of fc0 and fc1 train; all else is frozen. Then the merged weights."""
    net = Net()
    net.requires_grad_(False)
    net.bn0.eval()
    layers = {"fc0": LoraLinear(net.fc0, 2, 3, 4), "fc1": LoraLinear(net.fc1, 2, 3, 5)}
    net.fc0, net.fc1 = layers.values()
    train(net, torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.05), net)
    values = {}
    for name, layer in layers.items():
        values |= {f"{name}.w.lora_a": flat(layer.a.T), f"{name}.w.lora_b": flat(layer.b.T)}
        values[f"{name}.w"] = flat((layer.base.weight + layer.scale * layer.b @ layer.a).T)
    return values


print(json.dumps({"made_by": "tests/golden/finetune.py", "torch": torch.__version__,
                  "batch_statistics": groups(False), "frozen_statistics": groups(True), "lora": lora()}, indent=1))
