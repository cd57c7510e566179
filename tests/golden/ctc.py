"""Connectionist temporal classification losses and their gradients by PyTorch, in f64.

    python tests/golden/ctc.py > tests/golden/ctc.json
"""

import json

import torch
import torch.nn.functional as F

N, T, C, S = 4, 6, 5, 3
# Repeated labels need a blank between them. The last target fits no alignment with its input.
TARGETS = [[1, 1, 2], [3, 4, 0], [2, 0, 0], [4, 4, 4]]
INPUT_LENGTHS, TARGET_LENGTHS = [6, 4, 5, 4], [3, 2, 1, 3]


def logits():
    """The same numbers as in the test."""
    out = [3 * ((i * 7919 + 104729) % 1009 / 1009 - 0.5) for i in range(N * T * C)]
    return torch.tensor(out, dtype=torch.float64).reshape(N, T, C)


def case(reduction, zero_infinity, samples, blank=0, target_lengths=TARGET_LENGTHS):
    """The label 0 takes the place of the blank where the blank is another class."""
    targets = [[0 if label == blank else label for label in target] for target in TARGETS[:samples]]
    targets = targets if blank else TARGETS[:samples]
    x = logits()[:samples].requires_grad_()
    loss = F.ctc_loss(F.log_softmax(x, 2).transpose(0, 1), torch.tensor(targets),
                      torch.tensor(INPUT_LENGTHS[:samples]), torch.tensor(target_lengths[:samples]),
                      blank, reduction, zero_infinity)
    loss.sum().backward()
    rounded = lambda t: [float(f"{v:.12g}") for v in t.detach().flatten().tolist()]
    return {"reduction": reduction, "zero_infinity": zero_infinity, "samples": samples, "blank": blank,
            "targets": sum(targets, []), "target_lengths": target_lengths[:samples], "loss": rounded(loss),
            "gradient": rounded(x.grad)}


print(json.dumps({"made_by": "tests/golden/ctc.py", "torch": torch.__version__,
                  "cases": [case("none", False, 3), case("mean", False, 3), case("sum", True, 4),
                            case("mean", True, 4), case("none", False, 3, blank=4),
                            case("mean", True, 4, blank=2, target_lengths=[2, 0, 1, 3]),
                            case("sum", False, 2, target_lengths=[0, 1])]}))
