"""The networks of frontend/examples in PyTorch, for goldens and benchmarks."""

import torch
import torch.nn.functional as F
from torch import nn


class ConvBn(nn.Module):
    def __init__(self, channels, filters, kernel, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(filters)

    def forward(self, x):
        return self.bn(self.conv(x))


def shortcut(channels, filters, stride):
    same = stride == 1 and channels == filters
    return nn.Identity() if same else ConvBn(channels, filters, 1, stride)


class Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.out = filters
        self.a = ConvBn(channels, filters, 3, stride)
        self.b = ConvBn(filters, filters, 3, 1)
        self.shortcut = shortcut(channels, filters, stride)

    def forward(self, x):
        h = self.b(F.relu(self.a(x), inplace=True))
        return F.relu(h + self.shortcut(x), inplace=True)


class Bottleneck(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.out = 4 * filters
        self.a = ConvBn(channels, filters, 1, 1)
        self.b = ConvBn(filters, filters, 3, stride)
        self.c = ConvBn(filters, self.out, 1, 1)
        self.shortcut = shortcut(channels, self.out, stride)

    def forward(self, x):
        h = F.relu(self.b(F.relu(self.a(x), inplace=True)), inplace=True)
        return F.relu(self.c(h) + self.shortcut(x), inplace=True)


def resnet(stem, width, counts, block):
    """The layers of `stem`, a stage of blocks for each of `counts`, and a linear layer."""
    layers, channels = list(stem), width
    for stage, count in enumerate(counts):
        for i in range(count):
            layers.append(block(channels, width << stage, 2 if stage > 0 and i == 0 else 1))
            channels = layers[-1].out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def resnet18(width=64):
    """torchvision's, with the stem for small images."""
    return resnet([ConvBn(3, width, 3, 1), nn.ReLU(inplace=True)], width, [2, 2, 2, 2], Block)


def resnet50(width=64, counts=(3, 4, 6, 3)):
    """torchvision's, with 10 classes."""
    stem = [ConvBn(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return resnet(stem, width, counts, Bottleneck)


def alexnet(width=64, dropout=0.5):
    """torchvision's."""
    relu = lambda: nn.ReLU(inplace=True)
    conv = lambda i, o, *window: [nn.Conv2d(i * width, o * width, *window), relu()]
    pool = nn.MaxPool2d(3, 2)
    return nn.Sequential(
        nn.Conv2d(3, width, 11, 4, 2), relu(), pool, *conv(1, 3, 5, 1, 2), pool,
        *conv(3, 6, 3, 1, 1), *conv(6, 4, 3, 1, 1), *conv(4, 4, 3, 1, 1), pool,
        nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Dropout(dropout),
        nn.Linear(144 * width, 64 * width), relu(), nn.Dropout(dropout),
        nn.Linear(64 * width, 64 * width), relu(), nn.Linear(64 * width, 10))


class Values(nn.Module):
    """A parameter that is registered among the layers, in their order."""

    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape))

    def forward(self):
        return self.weight


class TransformerBlock(nn.Module):
    def __init__(self, heads, width, bias=True, causal=False, eps=1e-5, norm_first=True):
        super().__init__()
        self.heads, self.causal, self.norm_first = heads, causal, norm_first
        norm = lambda: nn.LayerNorm(width, eps, bias=bias)
        linear = lambda i, o: nn.Linear(i, o, bias=bias)
        self.ln0, self.qkv, self.out = norm(), linear(width, 3 * width), linear(width, width)
        self.ln1, self.fc0, self.fc1 = norm(), linear(width, 4 * width), linear(4 * width, width)

    def attend(self, x):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))

    def feed_forward(self, x):
        return self.fc1(F.gelu(self.fc0(x)))

    def forward(self, x):
        if self.norm_first:
            x = x + self.attend(self.ln0(x))
            return x + self.feed_forward(self.ln1(x))
        x = self.ln0(x + self.attend(x))
        return self.ln1(x + self.feed_forward(x))


def init_normal(net):
    for p in net.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, 0, 0.02)


class CharGpt(nn.Module):
    """The network of frontend/examples/char_gpt.h."""

    def __init__(self, layers, heads, width, length):
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.positions = Values(length, width)
        self.blocks = nn.Sequential(
            *(TransformerBlock(heads, width, bias=False, causal=True) for _ in range(layers)))
        self.ln = nn.LayerNorm(width, bias=False)
        self.head = nn.Linear(width, 256, bias=False)
        init_normal(self)

    def forward(self, text):
        return self.head(self.ln(self.blocks(self.bytes(text) + self.positions())))


class Bert(nn.Module):
    """The network of frontend/examples/bert_tiny.h, without dropout."""

    def __init__(self, layers, heads, width, length):
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.positions = Values(length, width)
        self.ln0 = nn.LayerNorm(width, 1e-12)
        self.blocks = nn.Sequential(
            *(TransformerBlock(heads, width, eps=1e-12, norm_first=False) for _ in range(layers)))
        self.head, self.ln1 = nn.Linear(width, width), nn.LayerNorm(width, 1e-12)
        self.logits = Values(256)
        init_normal(self)

    def forward(self, text):
        h = self.blocks(self.ln0(self.bytes(text) + self.positions()))
        h = self.ln1(F.gelu(self.head(h)))
        return h @ self.bytes.weight.T + self.logits()


class VitTiny(nn.Module):
    """The network of frontend/examples/vit_tiny.h."""

    def __init__(self, patch=4, layers=12, heads=3, width=192, side=32):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token, self.positions = Values(1, 1, width), Values((side // patch) ** 2 + 1, width)
        self.blocks = nn.Sequential(
            *(TransformerBlock(heads, width, eps=1e-6) for _ in range(layers)))
        self.ln = nn.LayerNorm(width, 1e-6)
        self.head = nn.Linear(width, 10)
        init_normal(self)

    def forward(self, x):
        patches = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token().expand(len(x), -1, -1), patches], 1) + self.positions()
        return self.head(self.ln(self.blocks(h)[:, 0]))


class LstmText(nn.Module):
    """The network of frontend/examples/lstm_text.h."""

    def __init__(self, layers, width):
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, 256)

    def forward(self, text):
        return self.head(self.lstm(self.bytes(text))[0])


class Dlrm(nn.Module):
    """The network of frontend/examples/dlrm.h; `x` holds the numbers, then the categories."""

    def __init__(self, numbers=13, categories=26, rows=10000, width=16, bottom=(512, 256, 64), top=(512, 256),
                 sparse=False):
        super().__init__()
        mlp = lambda widths: nn.Sequential(*(layer for i, o in zip(widths, widths[1:])
                                             for layer in (nn.Linear(i, o), nn.ReLU())))
        self.numbers, self.rows = numbers, rows
        self.bottom = mlp([numbers, *bottom, width])
        self.tables = nn.ModuleList(nn.Embedding(rows, width, sparse=sparse) for _ in range(categories))
        self.register_buffer("pairs", torch.tril_indices(categories + 1, categories + 1, -1))
        self.top = mlp([width + self.pairs.shape[1], *top])
        self.last = nn.Linear(top[-1], 1)

    def forward(self, x):
        dense = self.bottom(torch.log1p(torch.relu(x[:, : self.numbers])))
        category = x[:, self.numbers :].long() % self.rows
        vectors = torch.stack([dense, *(table(category[:, i]) for i, table in enumerate(self.tables))], 1)
        products = vectors @ vectors.transpose(1, 2)
        return self.last(self.top(torch.cat([dense, products[:, self.pairs[0], self.pairs[1]]], 1)))


# Kernel, expanded channels, channels, squeeze, activation, stride.
MOBILENET_V3_SMALL = [
    (3, 16, 16, True, nn.ReLU, 2), (3, 72, 24, False, nn.ReLU, 2), (3, 88, 24, False, nn.ReLU, 1),
    (5, 96, 40, True, nn.Hardswish, 2), (5, 240, 40, True, nn.Hardswish, 1), (5, 240, 40, True, nn.Hardswish, 1),
    (5, 120, 48, True, nn.Hardswish, 1), (5, 144, 48, True, nn.Hardswish, 1), (5, 288, 96, True, nn.Hardswish, 2),
    (5, 576, 96, True, nn.Hardswish, 1), (5, 576, 96, True, nn.Hardswish, 1)]


def mobilenet_v3_small(width=1.0, blocks=MOBILENET_V3_SMALL, gate=nn.Hardsigmoid, dropout=0.2):
    """torchvision's, with 10 classes. `gate`: the activation of the squeeze layers."""

    def channels(c):
        rounded = max(8, int(c + 4) // 8 * 8)
        return rounded + 8 if rounded < 0.9 * c else rounded

    def conv(i, o, kernel, stride=1, act=None, groups=1):
        layers = [nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False),
                  nn.BatchNorm2d(o, 1e-3, 0.01)]
        return layers + ([act(inplace=True)] if act else [])

    class Squeeze(nn.Module):
        def __init__(self, c):
            super().__init__()
            squeezed = channels(c // 4)
            self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, squeezed, 1), nn.ReLU(),
                                       nn.Conv2d(squeezed, c, 1), gate())

        def forward(self, x):
            return x * self.scale(x)

    class Block(nn.Module):
        def __init__(self, i, kernel, expanded, o, squeeze, act, stride):
            super().__init__()
            layers = conv(i, expanded, 1, act=act) if expanded != i else []
            layers += conv(expanded, expanded, kernel, stride, act, expanded)
            layers += [Squeeze(expanded)] if squeeze else []
            self.layers, self.adds = nn.Sequential(*layers, *conv(expanded, o, 1)), stride == 1 and i == o

        def forward(self, x):
            y = self.layers(x)
            return x + y if self.adds else y

    i, swish = channels(16 * width), nn.Hardswish
    layers = conv(3, i, 3, 2, swish)
    for kernel, expanded, o, squeeze, act, stride in blocks:
        o = channels(o * width)
        layers, i = [*layers, Block(i, kernel, channels(expanded * width), o, squeeze, act, stride)], o
    hidden = channels(1024 * width)
    return nn.Sequential(*layers, *conv(i, 6 * i, 1, act=swish), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(6 * i, hidden), nn.Hardswish(), nn.Dropout(dropout), nn.Linear(hidden, 10))
