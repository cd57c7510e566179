"""Parameters after some of 30 updates by PyTorch's optimizers, or by a paper's formula, in f64.

    python tests/golden/optimizers.py > tests/golden/optimizers.json

Linear regression on other samples in each step. Numbers come from training.py's `uniform`: the weight from
stream 0, the bias from 1, the inputs of step s from 100 + s, the targets from 200 + s. A case without settings
has PyTorch's defaults, except for the learning rate `lr`. A case of "shapes" has a weight of another shape,
whose elements are read as a matrix of two columns, and no bias. Its start is stream 0, or 0 where it says so.
"""

import inspect
import json
import sys

import torch

from training import uniform

SAMPLES, FEATURES, UNITS, STEPS = 6, 3, 2, 30
SHOWN = (1, 2, 6, 30)
torch.set_default_dtype(torch.float64)  # NAdam keeps a product in the default dtype


def numbers(stream, *shape):
    return torch.tensor(2 * uniform(stream, torch.Size(shape).numel()).reshape(shape) - 1)


class PaperOptimizer(torch.optim.Optimizer):
    """update(p, g, state, t) returns the new parameter; states start at 0."""

    settings = {}

    def __init__(self, params, lr, **settings):
        super().__init__(params, {"lr": lr} | self.settings | settings)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            group["t"] = group.get("t", 0) + 1
            for p in group["params"]:
                state = self.state[p]
                for name in self.states:
                    state.setdefault(name, torch.zeros_like(p))
                p.copy_(self.update(p, p.grad, state, group))


class Lion(PaperOptimizer):
    """Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2."""

    settings = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0}
    states = ("m",)

    def update(self, p, g, state, o):
        c = o["beta1"] * state["m"] + (1 - o["beta1"]) * g
        state["m"] = o["beta2"] * state["m"] + (1 - o["beta2"]) * g
        return p - o["lr"] * (torch.sign(c) + o["weight_decay"] * p)


def ratio_or_1(a, b):
    """The trust ratio; 1 where a norm is 0, as in the authors' code (tensorflow_addons, optimizers/lamb.py)."""
    return a / b if a > 0 and b > 0 else 1.0


class Lamb(PaperOptimizer):
    """You et al., "Large batch optimization for deep learning", 2020, algorithm 2, with phi(x) = x."""

    settings = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-6, "weight_decay": 0.01}
    states = ("m", "v")

    def update(self, p, g, state, o):
        state["m"] = o["beta1"] * state["m"] + (1 - o["beta1"]) * g
        state["v"] = o["beta2"] * state["v"] + (1 - o["beta2"]) * g**2
        m, v = state["m"] / (1 - o["beta1"] ** o["t"]), state["v"] / (1 - o["beta2"] ** o["t"])
        r = m / (v.sqrt() + o["eps"]) + o["weight_decay"] * p
        return p - o["lr"] * ratio_or_1(p.norm(), r.norm()) * r


class Lars(PaperOptimizer):
    """You et al., "Large batch training of convolutional networks", 2017, algorithm 1."""

    settings = {"momentum": 0.9, "trust_coefficient": 0.001, "weight_decay": 0.0}
    states = ("v",)

    def update(self, p, g, state, o):
        local = 1.0
        if p.norm() > 0 and g.norm() > 0:
            local = o["trust_coefficient"] * p.norm() / (g.norm() + o["weight_decay"] * p.norm())
        state["v"] = o["momentum"] * state["v"] + o["lr"] * local * (g + o["weight_decay"] * p)
        return p - state["v"]


class Muon:
    """torch.optim.Muon of the weight, which PyTorch holds as [out, in], and torch.optim.AdamW of the bias.

    PyTorch orthogonalizes in bf16; here its code runs in the dtype of the gradient.
    """

    def __init__(self, params, lr=1e-3, **settings):
        adamw = {k[len("adamw_"):]: v for k, v in settings.items() if k.startswith("adamw_")}
        settings = {k: v for k, v in settings.items() if not k.startswith("adamw_")}
        if "ns_a" in settings:
            settings["ns_coefficients"] = tuple(settings.pop(k) for k in ("ns_a", "ns_b", "ns_c"))
        settings["adjust_lr_fn"] = settings.pop("adjust_lr", None)
        self.weight, *self.biases = params
        self.transposed = torch.nn.Parameter(self.weight.detach().T.clone())
        self.muon = torch.optim.Muon([self.transposed], lr=lr, **settings)
        rate = lr * adamw.pop("lr_scale", 1.0)
        self.adamw = [torch.optim.AdamW([bias], lr=rate, weight_decay=settings.get("weight_decay", 0.1), **betas(adamw))
                      for bias in self.biases]

    def zero_grad(self):
        for p in (self.weight, *self.biases):
            p.grad = None

    def step(self):
        self.transposed.grad = self.weight.grad.T.clone()
        self.muon.step()
        for adamw in self.adamw:
            adamw.step()
        self.weight.data.copy_(self.transposed.data.T)


def orthogonalize_in_given_dtype():
    module = sys.modules["torch.optim._muon"]
    source = inspect.getsource(module._zeropower_via_newtonschulz)
    exec(source.replace("torch.bfloat16", "grad.dtype"), module.__dict__)


def adafactor(settings):
    settings = dict(settings)
    if "decay_exponent" in settings:
        settings["beta2_decay"] = -settings.pop("decay_exponent")
    if "clip_threshold" in settings:
        settings["d"] = settings.pop("clip_threshold")
    return settings | {"eps": (settings.pop("eps1", None), settings.pop("eps2", 1e-3))}


# Settings as Fluid names them -> keyword arguments of PyTorch.
def betas(settings, **others):
    settings = dict(settings)
    if "beta1" in settings:
        settings["betas"] = (settings.pop("beta1"), settings.pop("beta2"))
    return settings | others


def momentum(settings):
    return {"momentum": 0.9} | settings


OPTIMIZERS = {
    "sgd": (torch.optim.SGD, dict),
    "momentum": (torch.optim.SGD, momentum),
    "adagrad": (torch.optim.Adagrad, dict),
    "adadelta": (torch.optim.Adadelta, dict),
    "rmsprop": (torch.optim.RMSprop, dict),
    "adam": (torch.optim.Adam, betas),
    "adamw": (torch.optim.AdamW, betas),
    "adamax": (torch.optim.Adamax, betas),
    "nadam": (torch.optim.NAdam, betas),
    "radam": (torch.optim.RAdam, betas),
    "lion": (Lion, dict),
    "lamb": (Lamb, dict),
    "lars": (Lars, dict),
    "adafactor": (torch.optim.Adafactor, adafactor),
    "muon": (Muon, dict),
}
BETAS = {"beta1": 0.8, "beta2": 0.9, "weight_decay": 0.1}
ADAM = [({}, 0.1), (BETAS | {"eps": 0.01}, 0.1), ({"amsgrad": True}, 0.1),
        ({"beta1": 0.8, "beta2": 0.5, "amsgrad": True}, 0.1)]
DECOUPLED = {"decoupled_weight_decay": True}
CASES = {
    "sgd": [({}, 0.1), ({"weight_decay": 0.1}, 0.1)],
    "momentum": [({}, 0.1), ({"momentum": 0.5, "weight_decay": 0.1}, 0.1), ({"nesterov": True}, 0.1),
                 ({"momentum": 0.5, "nesterov": True, "weight_decay": 0.1}, 0.1),
                 ({"dampening": 0.3}, 0.1), ({"momentum": 0.5, "dampening": 1.0, "weight_decay": 0.1}, 0.1)],
    "adagrad": [({}, 0.1), ({"lr_decay": 0.1, "eps": 0.01, "weight_decay": 0.1}, 0.1),
                ({"initial_accumulator_value": 0.1}, 0.1)],
    "adadelta": [({}, None), ({"rho": 0.5, "eps": 0.01, "weight_decay": 0.1}, 0.5)],
    "rmsprop": [({}, None), ({"alpha": 0.5, "eps": 0.01, "weight_decay": 0.1}, 0.1), ({"momentum": 0.5}, 0.01),
                ({"centered": True}, 0.01), ({"alpha": 0.5, "centered": True, "momentum": 0.5}, 0.01)],
    "adam": [({}, None)] + ADAM,
    "adamw": [({}, None)] + ADAM,
    "adamax": [({}, None), (BETAS | {"eps": 0.01}, 0.1)],
    "radam": [({}, None), ({}, 0.1), (BETAS | {"eps": 0.01}, 0.1), (BETAS | DECOUPLED, 0.1)],
    "nadam": [({}, None), ({}, 0.1), (BETAS | {"eps": 0.01, "momentum_decay": 0.1}, 0.1), (BETAS | DECOUPLED, 0.1)],
    "lamb": [({}, 0.1), (BETAS | {"eps": 0.01}, 0.1), ({"weight_decay": 0.0}, 0.1)],
    "lars": [({}, 10), ({"momentum": 0.5, "trust_coefficient": 0.1, "weight_decay": 0.1}, 1)],
    "adafactor": [({}, None), ({}, 1.0), ({"decay_exponent": 0.5, "eps1": 0.1, "eps2": 0.01, "clip_threshold": 1.5,
                                           "weight_decay": 0.1}, 0.3)],
    "muon": [({}, 0.1), ({"momentum": 0.5, "nesterov": False, "weight_decay": 0.0, "adjust_lr": "match_rms_adamw"}, 0.1),
             ({"ns_a": 2.0, "ns_b": -1.5, "ns_c": 0.5, "ns_steps": 7, "eps": 0.5, "adjust_lr": "spectral_unclamped"}, 0.1),
             ({"adamw_lr_scale": 0.5, "adamw_beta1": 0.8, "adamw_beta2": 0.9, "adamw_eps": 0.01}, 0.1)],
    "lion": [({}, 0.1), ({"beta1": 0.8, "beta2": 0.5, "weight_decay": 0.1}, 0.1)],
}


SHAPES = [
    ("adafactor", {}, 0.1, (2, 3, 2, 2), 1), ("adafactor", {"eps1": 0.1, "weight_decay": 0.1}, 0.3, (3, 2, 1, 3), 1),
    ("muon", {}, 0.1, (2, 2), 1), ("muon", {}, 0.1, (2, 5), 1),
    ("lars", {"weight_decay": 0.1}, 0.1, (3, 2), 0), ("lamb", {}, 0.1, (3, 2), 0),
]


def train(name, settings, lr, params, features, shown_steps, predict):
    make, translated = OPTIMIZERS[name]
    optimizer = make(params, **translated(settings), **({} if lr is None else {"lr": lr}))
    shown = {}
    for step in range(STEPS):
        x, y = numbers(100 + step, SAMPLES, features), numbers(200 + step, SAMPLES, UNITS)
        optimizer.zero_grad()
        (predict(x) - y).square().mean().backward()
        optimizer.step()
        if step + 1 in shown_steps:
            shown[step + 1] = [float(f"{v:.13g}") for p in params for v in p.detach().flatten().tolist()]
    return {"optimizer": name, "settings": settings} | ({} if lr is None else {"lr": lr}) | {"params": shown}


def run(name, settings, lr):
    w, b = (torch.nn.Parameter(numbers(k, *shape)) for k, shape in enumerate([(FEATURES, UNITS), (UNITS,)]))
    return train(name, settings, lr, [w, b], FEATURES, SHOWN, lambda x: x @ w + b)


def run_shape(name, settings, lr, shape, start):
    w = torch.nn.Parameter(start * numbers(0, *shape))
    case = train(name, settings, lr, [w], w.numel() // UNITS, (1, STEPS), lambda x: x @ w.reshape(-1, UNITS))
    return case | {"shape": shape, "start": start}


def main():
    orthogonalize_in_given_dtype()
    cases = [json.dumps(run(name, *case)) for name, all_cases in CASES.items() for case in all_cases]
    shapes = [json.dumps(run_shape(*case)) for case in SHAPES]
    print('{"made_by": "tests/golden/optimizers.py", "torch": "%s", "cases": [\n%s],\n"shapes": [\n%s]}'
          % (torch.__version__, ",\n".join(cases), ",\n".join(shapes)))


main()
