"""Weights that PyTorch modules save by safetensors, and what the modules compute, in f32.

    python tests/golden/torch_weights.py [--full DIR]

Writes tests/golden/torch_weights/: a narrow ResNet-50 of torchvision and a network of the layers whose layouts
differ from Fluid's. With --full, also writes a ResNet-50 of full width, its images and its logits to DIR.
"""

import json
import os
import sys

import numpy as np
import safetensors.torch
import torch
import torchvision
from torch import nn
from torchvision.models.resnet import Bottleneck, ResNet

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_weights")


def spread(net, x):
    """Moves scales, biases and running statistics from their start values, so that a mix-up shows."""
    with torch.no_grad():
        for p in net.parameters():
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.1)
        net.train()
        for _ in range(20):
            net(x)


def narrow_resnet50(width):
    """torchvision's ResNet-50, with `width` instead of 64 filters and 10 classes."""
    net = ResNet(Bottleneck, [3, 4, 6, 3], num_classes=10)
    net.inplanes = width
    net.conv1, net.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
    for stage, blocks in enumerate([3, 4, 6, 3]):
        setattr(net, f"layer{stage + 1}",
                net._make_layer(Bottleneck, width << stage, blocks, 1 if stage == 0 else 2))
    net.fc = nn.Linear(width * 32, 10)
    return net


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.ln = nn.LayerNorm(6)
        self.lstm = nn.LSTM(6, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(8, 5, batch_first=True)
        self.fc = nn.Linear(5, 5)

    def forward(self, ids):
        h = self.embedding(ids)
        h = self.ln(h + self.attention(h, h, h, need_weights=False)[0])
        return self.fc(self.gru(self.lstm(h)[0])[0][:, -1])


def save(folder, name, net, x):
    torch.manual_seed(1)
    spread(net, x)
    net.eval()
    with torch.no_grad():
        y = net(x)
    path = os.path.join(folder, f"{name}.safetensors")
    safetensors.torch.save_file(net.state_dict(), path)
    os.chmod(path, 0o644)
    np.save(os.path.join(folder, f"{name}_x.npy"), x.numpy())
    np.save(os.path.join(folder, f"{name}_y.npy"), y.numpy())


def main():
    torch.manual_seed(0)
    if "--full" in sys.argv:
        folder = sys.argv[sys.argv.index("--full") + 1]
        save(folder, "resnet50", torchvision.models.resnet50(num_classes=10), torch.randn(4, 3, 224, 224))
        return
    os.makedirs(FOLDER, exist_ok=True)
    save(FOLDER, "resnet50", narrow_resnet50(2), torch.randn(2, 3, 32, 32))
    save(FOLDER, "layers", Layers(), torch.randint(0, 11, (3, 5)))
    with open(os.path.join(FOLDER, "made_by.json"), "w") as file:
        json.dump({"made_by": "tests/golden/torch_weights.py", "torch": torch.__version__,
                   "torchvision": torchvision.__version__}, file)


main()
