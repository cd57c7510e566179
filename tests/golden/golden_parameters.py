"""The start values of the networks of ../support/torch_networks.py in golden runs."""

import os
import sys

import numpy as np
import torch
from torch import nn

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from torch_networks import Values
from training import uniform


def set_golden_parameters(net):
    """Weight or bias k, in the order of the layers: uniform in +-1/sqrt(fan in), from stream k. A linear layer's weights
    are [in, out]. Normalisations start as PyTorch's do."""
    k = 0
    for layer in net.modules():
        if not isinstance(layer, (nn.Conv2d, nn.Linear, nn.Embedding, Values)):
            continue
        is_product = isinstance(layer, (nn.Conv2d, nn.Linear))
        fan_in = layer.weight[0].numel() if is_product else len(layer.weight)
        for p in layer.parameters():
            values = torch.tensor((2 * uniform(k, p.numel()) - 1) / np.sqrt(fan_in))
            is_linear = isinstance(layer, nn.Linear) and p.dim() == 2
            p.data = (values.reshape(p.shape[::-1]).T if is_linear else values.reshape(p.shape)).clone()
            k += 1
