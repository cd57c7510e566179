"""First losses of narrow models in PyTorch, in f64: what those of frontend/examples are compared with.

    python tests/golden/models.py > tests/golden/models.json

Weights, biases and data come from training.py's `uniform`; tests/e2e/models_test.cpp makes the same.
"""

import json

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from golden_parameters import set_golden_parameters
from torch_networks import MOBILENET_V3_SMALL, Dlrm, VitTiny, mobilenet_v3_small, resnet50
from training import uniform

STEPS, BATCH = 20, 4
MEAN, STD = [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]


class Layers:
    """Fluid's layers. The first run of a network makes the parameters, in the order of the calls: weight or bias k is
    uniform in +-1/sqrt(fan in) from stream k, scales are ones and shifts zeros. Linear weights are [in, out]."""

    def __init__(self):
        self.parameters, self.streams, self.used = [], 0, 0

    def restart(self):
        self.used = 0

    def parameter(self, make):
        if self.used == len(self.parameters):
            self.parameters.append(torch.tensor(make()).requires_grad_())
        self.used += 1
        return self.parameters[self.used - 1]

    def random(self, shape):
        self.streams += 1
        values = 2 * uniform(self.streams - 1, int(np.prod(shape))) - 1
        return values.reshape(shape) / np.sqrt(self.fan_in)

    def weight(self, *shape):
        self.fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        return self.parameter(lambda: self.random(shape))

    def bias(self, units):
        return self.parameter(lambda: self.random((units,)))

    def scale(self, units):
        return self.parameter(lambda: np.ones(units))

    def shift(self, units):
        return self.parameter(lambda: np.zeros(units))

    def linear(self, x, units, bias=True):
        y = x @ self.weight(x.shape[-1], units)
        return y + self.bias(units) if bias else y

    def mlp(self, x, widths):
        for units in widths:
            x = F.relu(self.linear(x, units))
        return x

    def conv(self, x, filters, kernel, stride=1, padding=0, groups=1, bias=True):
        w = self.weight(filters, x.shape[1] // groups, kernel, kernel)
        b = self.bias(filters) if bias else None
        return F.conv2d(x, w, b, stride, padding, 1, groups)

    def conv_bn(self, x, filters, kernel, stride=1, groups=1, eps=1e-5):
        h = self.conv(x, filters, kernel, stride, kernel // 2, groups, bias=False)
        return F.batch_norm(h, None, None, self.scale(filters), self.shift(filters), training=True, eps=eps)

    def layer_norm(self, x, eps=1e-5):
        width = x.shape[-1]
        return F.layer_norm(x, (width,), self.scale(width), self.shift(width), eps)

    def attention(self, x, heads):
        split = lambda v: v.unflatten(2, (heads, -1)).transpose(1, 2)
        q, k, v = map(split, self.linear(x, 3 * x.shape[2]).chunk(3, 2))
        return self.linear(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2), x.shape[2])

    def block(self, x, heads, norm_first, eps=1e-5):
        feed_forward = lambda v: self.linear(F.gelu(self.linear(v, 4 * x.shape[2])), x.shape[2])
        for change in (lambda v: self.attention(v, heads), feed_forward):
            x = x + change(self.layer_norm(x, eps)) if norm_first else self.layer_norm(x + change(x), eps)
        return x


def floats(stream, *shape, scale=1, shift=0):
    """Numbers in [shift, shift + scale), computed in f32, as f64."""
    numbers = uniform(stream, int(np.prod(shape))).astype(np.float32) * np.float32(scale) + np.float32(shift)
    return torch.tensor(numbers.reshape(shape).astype(np.float64))


def integers(stream, below, *shape):
    return torch.tensor((below * uniform(stream, int(np.prod(shape)))).astype(np.int64).reshape(shape))


def pixels(step, *shape):
    """u8 pixels times f32(1/255)."""
    return integers(300 + step, 256, *shape).double() * float(np.float32(1 / 255))


def color_images(step, side):
    channels = lambda v: torch.tensor(v, dtype=torch.float64)[:, None, None]
    return (pixels(step, BATCH, 3, side, side) - channels(MEAN)) / channels(STD)


def labels(step):
    return integers(200 + step, 10, BATCH)


def california_housing(net, step):
    mean, deviation = 206856, 115393
    means = torch.tensor([-119.57, 35.632, 28.639, 2635.8, 537.9, 1425.5, 499.5, 3.871], dtype=torch.float64)
    deviations = torch.tensor([2.003, 2.136, 12.585, 2181.6, 421.2, 1132.4, 382.3, 1.900], dtype=torch.float64)
    x, y = floats(600 + step, BATCH, 8, scale=1024), floats(500 + step, BATCH, 1, scale=2**19)
    h = net.mlp((x - means) / deviations, [8, 8])
    return F.mse_loss(net.linear(h, 1), (y - mean) / deviation)


def multi_task(net, step):
    label = labels(step)
    h = F.relu(net.conv(pixels(step, BATCH, 1, 28, 28), 4, 5, 2, 2))
    trunk = F.relu(net.linear(F.max_pool2d(h, 2).flatten(1), 8))
    logits, odd = net.linear(trunk, 10), net.linear(trunk, 1)[:, 0]
    return F.cross_entropy(logits, label) + 0.25 * F.binary_cross_entropy_with_logits(odd, (label % 2).double())


def vae(net, step):
    x = pixels(step, BATCH, 1, 8, 8).flatten(1)
    h = torch.tanh(net.linear(x, 12))
    mean, log_var = net.linear(h, 3), net.linear(h, 3)
    latent = mean + torch.exp(log_var / 2) * floats(600 + step, BATCH, 3, scale=4, shift=-2)
    logits = net.linear(torch.tanh(net.linear(latent, 12)), 64)
    divergence = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum()
    return (F.binary_cross_entropy_with_logits(logits, x, reduction="sum") + divergence) / BATCH


def dlrm(net, step):
    dense, category = floats(600 + step, BATCH, 3, scale=8), integers(500 + step, 40, BATCH, 4)
    logits = net(torch.cat([dense, category.double()], 1))
    return F.binary_cross_entropy_with_logits(logits, (labels(step) % 2).double()[:, None])


def classifier(side):
    return lambda net, step: F.cross_entropy(net(color_images(step, side)), labels(step))


class Hardsigmoid(nn.Module):
    """The backward of PyTorch's multiplies by a sixth that is rounded to f32."""

    def forward(self, x):
        return F.relu6(x + 3) / 6


def unet(net, step):
    width, levels = 4, 2
    two_convs = lambda v, filters: F.relu(net.conv_bn(F.relu(net.conv_bn(v, filters, 3)), filters, 3))
    x = pixels(step, BATCH, 1, 16, 16)
    h, skips = x, []
    for level in range(levels):
        skips.append(two_convs(h, width << level))
        h = F.max_pool2d(skips[-1], 2)
    h = two_convs(h, width << levels)
    for level in reversed(range(levels)):
        filters = width << level
        up = F.conv_transpose2d(h, net.weight(h.shape[1], filters, 2, 2), net.bias(filters), 2)
        h = two_convs(torch.cat([skips[level], up], 1), filters)
    target = torch.where(x[:, 0] > 0.5, labels(step)[:, None, None], 10)
    return F.cross_entropy(net.conv(h, 11, 1), target)


def bert_tiny(net, step):
    width, length = 8, 12
    text = 97 + integers(500 + step, 8, BATCH, length)
    masked = integers(600 + step, 100, BATCH, length) < 30
    table = net.weight(256, width)
    positions = net.weight(length, width)
    h = net.layer_norm(F.embedding(text.masked_fill(masked, 0), table) + positions, 1e-12)
    for _ in range(2):
        h = net.block(h, 2, norm_first=False, eps=1e-12)
    h = net.layer_norm(F.gelu(net.linear(h, width)), 1e-12)
    logits = h @ table.T + net.bias(256)
    return (F.cross_entropy(logits.transpose(1, 2), text, reduction="none") * masked).mean() / 0.3


def losses(model, make_optimizer, network=None):
    """`network` makes the network of `model`; None: `model` calls the layers of a Layers."""
    net = network().double() if network else Layers()
    if network:
        set_golden_parameters(net)
    optimizer, out = None, []
    for step in range(STEPS):
        if not network:
            net.restart()
        loss = model(net, step)
        optimizer = optimizer or make_optimizer(list(net.parameters()) if network else net.parameters)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(float(loss.detach()))
    return out


def main():
    torch.set_num_threads(1)
    adam = lambda lr: lambda p: torch.optim.Adam(p, lr)
    adamw = lambda lr: lambda p: torch.optim.AdamW(p, lr)
    sgd = lambda p: torch.optim.SGD(p, 0.1)
    momentum = lambda decay: lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, weight_decay=decay)
    small_dlrm = lambda: Dlrm(numbers=3, categories=4, rows=10, width=4, bottom=(8,), top=(8, 8))
    small_vit = lambda: VitTiny(patch=4, layers=2, heads=2, width=8, side=16)
    small_mobilenet = lambda: mobilenet_v3_small(0.25, MOBILENET_V3_SMALL[:5], Hardsigmoid, dropout=0)
    golden = {
        "made_by": "tests/golden/models.py",
        "torch": torch.__version__,
        "california_housing": losses(california_housing, adam(0.01)),
        "multi_task": losses(multi_task, adam(0.01)),
        "vae": losses(vae, adam(0.01)),
        "dlrm": losses(dlrm, sgd, small_dlrm),
        "vit_tiny": losses(classifier(16), adamw(0.001), small_vit),
        "mobilenet_v3_small": losses(classifier(64), momentum(1e-5), small_mobilenet),
        "resnet50": losses(classifier(64), momentum(1e-4), lambda: resnet50(4, [2, 1])),
        "unet": losses(unet, adam(0.001)),
        "bert_tiny": losses(bert_tiny, adamw(0.001)),
    }
    print("{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in golden.items()) + "\n}")


main()
