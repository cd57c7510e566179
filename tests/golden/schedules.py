"""Learning rates of 60 updates by PyTorch's schedulers in f64, or by the formulas of Keras, Paddle and papers.

    python tests/golden/schedules.py > tests/golden/schedules.json

Settings have Fluid's names. A schedule that PyTorch stops, or that rises again, keeps its last rate. Warm-up is
PyTorch's LinearLR or ConstantLR, joined by SequentialLR.
"""

import json
import math

import torch
from torch.optim import lr_scheduler as schedulers

UPDATES, LR = 60, 0.3


def optimizer(lr=LR):
    return torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=lr)


def curve(scheduler, opt, updates=UPDATES, last=None):
    """Rates by a scheduler, which stops after update `last`."""
    rates = []
    for update in range(updates):
        rates.append(opt.param_groups[0]["lr"])
        if last is None or update < last:
            opt.step()
            scheduler.step()
    return rates


def torch_curve(make, last=None):
    opt = optimizer()
    return curve(make(opt), opt, last=last)


def formula(rate):
    return lambda warmup, **settings: [rate(t, **settings) for t in range(UPDATES)]


def step(warmup, every, factor=0.1):
    return torch_curve(lambda o: schedulers.StepLR(o, every, factor))


def multistep(warmup, milestones, factor=0.1):
    return torch_curve(lambda o: schedulers.MultiStepLR(o, [m - warmup for m in milestones], factor))


def exponential(warmup, factor, every=1):
    if every == 1:
        return torch_curve(lambda o: schedulers.ExponentialLR(o, factor))
    return [LR * factor ** (t / every) for t in range(UPDATES)]  # Keras's ExponentialDecay


def polynomial(warmup, steps, power=1.0, end=0.0):
    n = steps - warmup
    if end == 0:
        return torch_curve(lambda o: schedulers.PolynomialLR(o, n, power))
    return [(LR - end) * (1 - min(t, n) / n) ** power + end for t in range(UPDATES)]  # Keras's PolynomialDecay


def linear(warmup, steps, end=0.0):
    return torch_curve(lambda o: schedulers.LinearLR(o, 1.0, end / LR, steps - warmup))


def cosine(warmup, steps, end=0.0):
    n = steps - warmup
    return torch_curve(lambda o: schedulers.CosineAnnealingLR(o, n, end), last=n)


def cosine_restarts(warmup, period, growth=1, end=0.0):
    return torch_curve(lambda o: schedulers.CosineAnnealingWarmRestarts(o, period, growth, end))


def one_cycle(warmup, steps, pct_start=0.3, div_factor=25.0, final_div_factor=1e4, three_phase=False,
              linear_anneal=False):
    n = steps - warmup
    return torch_curve(lambda o: schedulers.OneCycleLR(
        o, LR, n, pct_start=pct_start, anneal_strategy="linear" if linear_anneal else "cos", div_factor=div_factor,
        final_div_factor=final_div_factor, three_phase=three_phase, cycle_momentum=False), last=n - 1)


@formula
def constant(t):
    return LR


def noam(warmup, d_model):
    """Vaswani et al., "Attention is all you need", 2017, equation 3."""
    return [LR * d_model**-0.5 * min(t**-0.5, t * warmup**-1.5) for t in range(1, UPDATES + 1)]


@formula
def inverse_time(t, decay, every=1, staircase=False):
    """Keras's InverseTimeDecay."""
    return LR / (1 + decay * (math.floor(t / every) if staircase else t / every))


def piecewise(warmup, boundaries, values):
    """Paddle's PiecewiseDecay."""
    def rate(t):
        for boundary, value in zip(boundaries, values):
            if t + warmup < boundary:
                return value
        return values[-1]
    return [rate(t) for t in range(UPDATES)]


CASES = {
    constant: [{}],
    step: [{"every": 7}, {"every": 1, "factor": 0.9}],
    multistep: [{"milestones": [10, 30, 45]}, {"milestones": [11, 12], "factor": 0.5}],
    exponential: [{"factor": 0.95}, {"factor": 0.5, "every": 9}],
    polynomial: [{"steps": 50}, {"steps": 60, "power": 2.5}, {"steps": 40, "power": 0.5, "end": 0.01}],
    linear: [{"steps": 45}, {"steps": 60, "end": 0.06}, {"steps": 30, "end": 0.15}],
    cosine: [{"steps": 60}, {"steps": 35, "end": 0.03}],
    cosine_restarts: [{"period": 13}, {"period": 5, "growth": 2}, {"period": 1, "growth": 3, "end": 0.02}],
    one_cycle: [{"steps": 60}, {"steps": 50, "pct_start": 0.4, "div_factor": 10.0, "final_div_factor": 100.0},
                {"steps": 55, "three_phase": True}, {"steps": 48, "pct_start": 0.45, "linear_anneal": True},
                {"steps": 60, "three_phase": True, "linear_anneal": True}],
    inverse_time: [{"decay": 0.2}, {"decay": 0.5, "every": 6}, {"decay": 0.5, "every": 6, "staircase": True}],
    piecewise: [{"boundaries": [10, 25], "values": [0.5, 0.25, 1.5]}, {"boundaries": [], "values": [0.7]}],
}
WARMUPS = [{"warmup": 5}, {"warmup": 8, "warmup_start": 0.25},
           {"warmup": 6, "warmup_start": 0.125, "constant_warmup": True}]


def warmup_scheduler(opt, warmup, warmup_start=0.0, constant_warmup=False):
    if constant_warmup:
        return schedulers.ConstantLR(opt, warmup_start, warmup)
    first = warmup_start + (1 - warmup_start) / warmup
    return schedulers.LinearLR(opt, first, 1.0, warmup - 1)


def warm(rates, settings):
    opt = optimizer(1.0)
    factors = curve(warmup_scheduler(opt, **settings), opt, settings["warmup"])
    return [f * rates[0] for f in factors] + rates[:UPDATES - settings["warmup"]]


def check_sequential():
    """`warm` is what PyTorch's SequentialLR does."""
    for settings in WARMUPS:
        opt = optimizer()
        joined = schedulers.SequentialLR(
            opt, [warmup_scheduler(opt, **settings), schedulers.StepLR(opt, 7)], [settings["warmup"]])
        expected = curve(joined, opt)
        found = warm(step(settings["warmup"], 7), settings)
        assert all(abs(e - f) < 1e-12 for e, f in zip(expected, found))


def case(schedule, settings, rates):
    return json.dumps({"schedule": schedule, "lr": LR, "settings": settings, "rates": [float(f"{r:.12g}") for r in rates]})


def main():
    check_sequential()
    cases = []
    for rule, all_settings in CASES.items():
        name = "constant" if rule is constant else "inverse_time" if rule is inverse_time else rule.__name__
        for i, settings in enumerate(all_settings):
            cases.append(case(name, settings, rule(0, **settings)))
            warmup = WARMUPS[i % len(WARMUPS)]
            cases.append(case(name, settings | warmup, warm(rule(warmup["warmup"], **settings), warmup)))
    for settings in ({"d_model": 64, "warmup": 10}, {"d_model": 512, "warmup": 100}):
        cases.append(case("noam", settings, noam(**settings)))
    print('{"made_by": "tests/golden/schedules.py", "torch": "%s", "cases": [\n%s]}'
          % (torch.__version__, ",\n".join(cases)))


main()
