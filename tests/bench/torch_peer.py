"""One workload on PyTorch, measured when told: python torch_peer.py WORK eager|compile nchw|nhwc

Prints {"ready": ..., "first_s": ...} when warm, then reads lines: for each it runs 50 steps (500 for
linear_regression) and prints {"ms": milliseconds a step}. Ends with its input. A step is what a user
runs: move the batch in, train or infer, fetch the loss or the result as a number.
"""

import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

START = time.perf_counter()
WORK, MODE, LAYOUT = sys.argv[1:4]
torch.manual_seed(0)


class SeedCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 5)
        self.drop = nn.Dropout2d(0.1)
        self.l1, self.l2 = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(self.c2(F.max_pool2d(self.c1(x), 2)), 2)
        x = F.adaptive_max_pool2d(self.drop(x), 1).flatten(1)
        return self.l2(F.relu(self.l1(x)))


class FluidMnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 20, 5, padding=2), nn.Conv2d(20, 20, 5, padding=2)
        self.fc = nn.Linear(980, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(x.flatten(1))


def placed(model, x):
    if LAYOUT == "nhwc" and x.dim() == 4:
        form = torch.channels_last
        return model.to(memory_format=form), x.contiguous(memory_format=form)
    return model, x


def compiled(f):
    return torch.compile(f) if MODE == "compile" else f


def trainer(model, x, y, loss_of, make_optimizer):
    model, x = placed(model, x)
    optimizer = make_optimizer(model.parameters())
    forward = compiled(lambda x, y: loss_of(model(x), y))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def inferrer(model, x):
    model, x = placed(model.eval(), x)
    forward = compiled(model)

    def step():
        with torch.inference_mode():
            return forward(x).sum().item()

    return step


def linear_regression():
    n = 1_000_000
    x = 10 * torch.rand(n, 2) - 5
    y = x @ torch.tensor([[2.0], [-3.0]]) + 10 + torch.normal(0.0, 2.0, (n, 1))
    return trainer(nn.Linear(2, 1), x, y, F.mse_loss, lambda p: torch.optim.Adam(p, 0.1))


WORKS = {
    "linear_regression": linear_regression,
    "seed_cnn": lambda: trainer(SeedCnn(), torch.rand(128, 1, 32, 32), torch.randint(10, (128,)),
                                F.cross_entropy, lambda p: torch.optim.Adam(p, 0.02)),
    "fluid_mnist": lambda: trainer(FluidMnist(), torch.rand(100, 1, 28, 28), torch.randint(10, (100,)),
                                   F.cross_entropy, lambda p: torch.optim.SGD(p, 0.01)),
    "seed_cnn_infer": lambda: inferrer(SeedCnn(), torch.rand(1, 1, 32, 32)),
}
STEPS = {"linear_regression": 500, "seed_cnn_infer": 500}.get(WORK, 50)

step = WORKS[WORK]()
step()
first = time.perf_counter() - START
for _ in range(10):
    step()
print(json.dumps({"ready": WORK, "first_s": first, "version": torch.__version__,
                  "threads": torch.get_num_threads()}), flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    print(json.dumps({"ms": (time.perf_counter() - start) * 1e3 / STEPS}), flush=True)
