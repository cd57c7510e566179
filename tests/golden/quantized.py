"""Results of quantized layers by PyTorch's kernels of 8-bit integers.

    python tests/golden/quantized.py > tests/golden/quantized.json

tests/executor/quantized_kernels_test.cpp computes the same with `quantize` and `dequantize`. All numbers come from
training.py's `uniform`: x from stream 1, weights from stream 2, biases from stream 3. Made with PyTorch 2.15.
"""

import json

import numpy as np
import torch

from training import uniform

torch.backends.quantized.engine = "onednn"


def drawn(stream, shape):
    return uniform(stream, int(np.prod(shape))).reshape(shape)


def integers(stream, shape, low, high):
    """Whole numbers in [low, high]."""
    return np.floor(low + (high - low + 1) * drawn(stream, shape))


def quantized_input(case):
    q = integers(1, case["x"], 0, 255)
    x = torch.tensor((q - case["x_zero_point"]) * case["x_scale"], dtype=torch.float32)
    return torch.quantize_per_tensor(x, case["x_scale"], case["x_zero_point"], torch.quint8)


def quantized_weight(shape, axis):
    scales = torch.tensor([(c + 8) / 4096 for c in range(shape[axis])], dtype=torch.float64)
    per_axis = [-1 if d == axis else 1 for d in range(len(shape))]
    w = torch.tensor(integers(2, shape, -127, 127)) * scales.reshape(per_axis)
    points = torch.zeros(shape[axis], dtype=torch.int64)
    return torch.quantize_per_channel(w.float(), scales, points, axis, torch.qint8)


def bias_of(channels):
    return torch.tensor(4 * drawn(3, (channels,)) - 2, dtype=torch.float32)


def convolution(case):
    w = quantized_weight(case["w"], 0)
    packed = torch.ops.quantized.conv2d_prepack(
        w, bias_of(case["w"][0]), case["stride"], case["padding"], [1, 1], 1)
    f = torch.ops.quantized.conv2d_relu if case["relu"] else torch.ops.quantized.conv2d
    return f(quantized_input(case), packed, case["y_scale"], case["y_zero_point"])


def linear(case):
    """Fluid's weight [in, out] is the transpose of PyTorch's."""
    inputs, units = case["w"]
    scales = torch.tensor([(c + 8) / 4096 for c in range(units)], dtype=torch.float64)
    w = torch.tensor(integers(2, case["w"], -127, 127)).T * scales[:, None]
    points = torch.zeros(units, dtype=torch.int64)
    q = torch.quantize_per_channel(w.float(), scales, points, 0, torch.qint8)
    f = torch.ops.quantized.linear_relu if case["relu"] else torch.ops.quantized.linear
    packed = torch.ops.quantized.linear_prepack(q, bias_of(units))
    return f(quantized_input(case), packed, case["y_scale"], case["y_zero_point"])


CASES = [
    {"op": "conv2d", "x": [2, 8, 7, 6], "w": [16, 8, 3, 3], "stride": [1, 1], "padding": [1, 1], "relu": True,
     "x_scale": 1 / 64, "x_zero_point": 0, "y_scale": 1 / 16, "y_zero_point": 0},
    {"op": "conv2d", "x": [1, 8, 9, 9], "w": [5, 8, 3, 3], "stride": [2, 2], "padding": [1, 1], "relu": False,
     "x_scale": 1 / 64, "x_zero_point": 0, "y_scale": 1 / 8, "y_zero_point": 120},
    {"op": "conv2d", "x": [2, 12, 4, 5], "w": [16, 12, 1, 1], "stride": [1, 1], "padding": [0, 0], "relu": False,
     "x_scale": 1 / 32, "x_zero_point": 131, "y_scale": 1 / 8, "y_zero_point": 128},
    {"op": "linear", "x": [7, 33], "w": [33, 10], "relu": True,
     "x_scale": 1 / 64, "x_zero_point": 0, "y_scale": 1 / 16, "y_zero_point": 0},
    {"op": "linear", "x": [1, 64], "w": [64, 17], "relu": False,
     "x_scale": 1 / 64, "x_zero_point": 128, "y_scale": 1 / 8, "y_zero_point": 100},
]

for case in CASES:
    y = (convolution if case["op"] == "conv2d" else linear)(case)
    case["y"] = y.int_repr().flatten().tolist()
print("[\n" + ",\n".join(json.dumps(case) for case in CASES) + "\n]")
