"""Losses of PyTorch's own training runs: what Fluid's runs are compared with.

    python tests/golden/training.py > tests/golden/training.json

Parameters and data come from `uniform`, a counter hash that tests/support/golden.h repeats bit for
bit, so that no tensor needs to be stored. Per work: 50 losses in f64, 50 in f32 (one thread).
"""

import json

import numpy as np
import torch
import torch.nn.functional as F

STEPS = 50
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)


def uniform(stream, n):
    """n numbers in [0, 1): splitmix64 of (stream << 32) + index, its top 53 bits."""
    with np.errstate(over="ignore"):
        z = (np.uint64(stream) << np.uint64(32)) + np.arange(n, dtype=np.uint64)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def parameters(shapes, dtype):
    """Parameter k: uniform in +-1/sqrt(fan in of the layer), from stream k. Without a fan in: ones, the scale of a
    normalisation, which is not counted."""
    made = []
    k = 0
    for shape, fan_in in shapes:
        start = np.ones(shape)
        if fan_in is not None:
            start = (2 * uniform(k, int(np.prod(shape))).reshape(shape) - 1) / np.sqrt(fan_in)
            k += 1
        made.append(torch.tensor(start, dtype=dtype).requires_grad_())
    return made


def images(step, size):
    """Images and labels of a step: a label's 7 x 7 cells of 4 x 4 pixels, on or off (some of them
    differ from image to image); noise where on, 0 where off, so that pools meet ties as in MNIST."""
    label = (10 * uniform(200 + step, size)).astype(np.int64)
    likely = uniform(199, 10 * 49).reshape(10, 7, 7)[label]
    on = likely + uniform(300 + step, size * 49).reshape(size, 7, 7) < 1
    noise = 64 + np.floor(192 * uniform(400 + step, size * 784)).reshape(size, 1, 28, 28)
    on = on.repeat(4, axis=1).repeat(4, axis=2)[:, None]
    return np.where(on, noise, 0).astype(np.uint8), torch.tensor(label)


# Parameters in the order in which the programs record them: weights as [out, in, ...] for
# convolutions and [in, out] for linear layers.
def linear_regression(p, x, y):
    return F.mse_loss(x @ p[0] + p[1], y)


def mnist_fluid(p, x, y):
    h = F.max_pool2d(F.relu(F.conv2d(x, p[0], p[1], padding=2)), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, p[2], p[3], padding=2)), 2)
    return F.cross_entropy(h.flatten(1) @ p[4] + p[5], y)


def mnist_cnn(p, x, y):
    h = F.max_pool2d(F.conv2d(x, p[0], p[1]), 2)
    h = F.max_pool2d(F.conv2d(h, p[2], p[3]), 2)
    h = F.adaptive_max_pool2d(h, 1).flatten(1)
    return F.cross_entropy(F.relu(h @ p[4] + p[5]) @ p[6] + p[7], y)


FLUID_SHAPES = [((20, 1, 5, 5), 25), ((20,), 25), ((20, 20, 5, 5), 500), ((20,), 500),
                ((980, 10), 980), ((10,), 980)]
CNN_SHAPES = [((32, 1, 3, 3), 9), ((32,), 9), ((64, 32, 5, 5), 800), ((64,), 800),
              ((64, 32), 64), ((32,), 64), ((32, 10), 32), ((10,), 32)]


GPT_LAYERS, GPT_HEADS, GPT_WIDTH, GPT_LENGTH = 2, 2, 16, 12


def gpt_block(p, h):
    def heads(x):
        return x.unflatten(2, (GPT_HEADS, -1)).transpose(1, 2)

    q, k, v = (F.layer_norm(h, (GPT_WIDTH,), p[0]) @ p[1]).split(GPT_WIDTH, 2)
    y = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=True)
    h = h + y.transpose(1, 2).flatten(2) @ p[2]
    return h + F.gelu(F.layer_norm(h, (GPT_WIDTH,), p[3]) @ p[4]) @ p[5]


def char_gpt(p, text, target):
    h = F.embedding(text.long(), p[0]) + p[1]
    for i in range(GPT_LAYERS):
        h = gpt_block(p[2 + 6 * i : 8 + 6 * i], h)
    logits = F.layer_norm(h, (GPT_WIDTH,), p[-2]) @ p[-1]
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


GPT_SHAPES = [((256, GPT_WIDTH), 256), ((GPT_LENGTH, GPT_WIDTH), GPT_LENGTH)]
for _ in range(GPT_LAYERS):
    GPT_SHAPES += [((GPT_WIDTH,), None), ((GPT_WIDTH, 3 * GPT_WIDTH), GPT_WIDTH),
                   ((GPT_WIDTH, GPT_WIDTH), GPT_WIDTH), ((GPT_WIDTH,), None),
                   ((GPT_WIDTH, 4 * GPT_WIDTH), GPT_WIDTH), ((4 * GPT_WIDTH, GPT_WIDTH), 4 * GPT_WIDTH)]
GPT_SHAPES += [((GPT_WIDTH,), None), ((GPT_WIDTH, 256), GPT_WIDTH)]

LSTM_LAYERS, LSTM_WIDTH, LSTM_LENGTH = 2, 8, 12


def lstm_text(p, text, target):
    weights = []
    for w, u, b in zip(p[1:-2:3], p[2:-2:3], p[3:-2:3]):
        weights += [w, u, b, torch.zeros_like(b)]
    zeros = p[0].new_zeros(LSTM_LAYERS, len(text), LSTM_WIDTH)
    h = torch.lstm(F.embedding(text.long(), p[0]), (zeros, zeros), weights, has_biases=True,
                   num_layers=LSTM_LAYERS, dropout=0.0, train=True, bidirectional=False, batch_first=True)[0]
    return F.cross_entropy((h @ p[-2] + p[-1]).flatten(0, 1), target.flatten())


LSTM_SHAPES = [((256, LSTM_WIDTH), 256)]
for _ in range(LSTM_LAYERS):
    LSTM_SHAPES += [(shape, 4 * LSTM_WIDTH) for shape in
                    [(4 * LSTM_WIDTH, LSTM_WIDTH)] * 2 + [(4 * LSTM_WIDTH,)]]
LSTM_SHAPES += [((LSTM_WIDTH, 256), LSTM_WIDTH), ((256,), LSTM_WIDTH)]


def texts(size, length):
    """Bytes from a to h, and the bytes that follow them, for each step."""
    made = []
    for step in range(STEPS):
        u = uniform(500 + step, size * (length + 1)).reshape(size, length + 1)
        text = torch.tensor(97 + np.floor(8 * u).astype(np.int64))
        made.append((text[:, :-1], text[:, 1:]))
    return made


def losses(network, shapes, batches, make_optimizer, dtype):
    p = parameters(shapes, dtype)
    optimizer = make_optimizer(p)
    out = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = network(p, x.to(dtype), y if y.dtype == torch.int64 else y.to(dtype))
        loss.backward()
        optimizer.step()
        out.append(float(loss.detach()))
    return out


def linear_batches():
    n = 1000
    x = 10 * uniform(100, 2 * n).reshape(n, 2) - 5
    noise = 2 * (uniform(101, 12 * n).reshape(n, 12).sum(1, keepdims=True) - 6)
    y = x @ np.array([[2.0], [-3.0]]) + 10 + noise
    # Both precisions start from the same f32 data.
    return [(torch.tensor(x.astype(np.float32)), torch.tensor(y.astype(np.float32)))] * STEPS


def image_batches(size, dtype):
    """u8 pixels times f32(1/255), computed in the run's own precision."""
    scale = float(np.float32(1 / 255))
    batches = [images(step, size) for step in range(STEPS)]
    return [(torch.tensor(x).to(dtype) * scale, y) for x, y in batches]


def main():
    sgd = lambda p: torch.optim.SGD(p, 0.01)
    momentum = lambda p: torch.optim.SGD(p, 0.01, momentum=0.9)
    adam = lambda lr: lambda p: torch.optim.Adam(p, lr)
    fluid = lambda dtype: image_batches(100, dtype)
    cnn = lambda dtype: image_batches(128, dtype)
    works = {
        "linear_regression": (linear_regression, [((2, 1), 2), ((1,), 2)], lambda d: linear_batches(), adam(0.1)),
        "mnist_fluid_sgd": (mnist_fluid, FLUID_SHAPES, fluid, sgd),
        "mnist_fluid_momentum": (mnist_fluid, FLUID_SHAPES, fluid, momentum),
        "mnist_fluid_adam": (mnist_fluid, FLUID_SHAPES, fluid, adam(0.001)),
        "char_gpt_adamw": (char_gpt, GPT_SHAPES, lambda d: texts(4, GPT_LENGTH),
                           lambda p: torch.optim.AdamW(p, 0.003)),
        "lstm_text_adam": (lstm_text, LSTM_SHAPES, lambda d: texts(4, LSTM_LENGTH), adam(0.01)),
        "mnist_cnn_adam": (mnist_cnn, CNN_SHAPES, cnn, adam(0.02)),
    }
    golden = {"made_by": "tests/golden/training.py", "torch": torch.__version__}
    for name, (network, shapes, batches, optimizer) in works.items():
        golden[name] = {
            label: losses(network, shapes, batches(dtype), optimizer, dtype)
            for label, dtype in (("f64", torch.float64), ("f32", torch.float32))
        }
    print("{")
    lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in golden.items()]
    print(",\n".join(lines))
    print("}")


if __name__ == "__main__":
    main()
