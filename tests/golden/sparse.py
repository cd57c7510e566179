"""Tables after some steps of PyTorch's optimizers with sparse gradients, in f64.

    python tests/golden/sparse.py > tests/golden/sparse.json

A step reads a table [V, D] at an index [N, L], by torch.nn.Embedding or by a weighted sum of
torch.nn.EmbeddingBag. The loss is the sum of the squared distances to a target.
"""

import json

import torch
from torch import nn

from training import uniform

V, D, N, L, STEPS = 11, 3, 4, 3, 4
INDEX, TARGET, WEIGHTS = 100, 200, 300  # streams: plus the step
EPS = 1e-30  # SparseAdam adds eps before the bias correction of the denominator, Adam after it
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, eps=1e-10),
    "adam": lambda p: torch.optim.SparseAdam(p, lr=0.1, eps=EPS),
}


def numbers(stream, shape):
    return torch.tensor(uniform(stream, torch.Size(shape).numel())).reshape(shape)


def table(optimizer, bag):
    layer = (nn.EmbeddingBag if bag else nn.Embedding)(V, D, sparse=True, dtype=torch.float64,
                                                       **({"mode": "sum"} if bag else {}))
    with torch.no_grad():
        layer.weight.copy_(numbers(0, (V, D)))
    step = OPTIMIZERS[optimizer](list(layer.parameters()))
    for s in range(STEPS):
        # Row V - 1 is never read, and others are read several times.
        index = (numbers(INDEX + s, (N, L)) * (V - 1)).long()
        y = layer(index, per_sample_weights=numbers(WEIGHTS + s, (N, L))) if bag else layer(index)
        loss = (y - numbers(TARGET + s, y.shape)).square().sum()
        step.zero_grad()
        loss.backward()
        step.step()
    return layer.weight.detach().flatten().tolist()


print(json.dumps({"made_by": "tests/golden/sparse.py", "torch": torch.__version__,
                  "cases": [{"optimizer": o, "bag": b, "table": table(o, b)}
                            for o in OPTIMIZERS for b in (False, True)]}))
