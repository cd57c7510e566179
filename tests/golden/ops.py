"""Writes ops.json: results and gradients of layers, losses and optimizers in f64, from PyTorch.

    python tests/golden/ops.py

Inputs follow from a formula (see `numbers`), so only results are stored. Gradients are those of
sum(y * dy) for dy = numbers(shape, 99).
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F


def numbers(shape, seed, levels=1009):
    n = 1
    for extent in shape:
        n *= extent
    values = [((i * 7919 + seed * 104729) % levels) / levels - 0.5 for i in range(n)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def flat(tensor):
    """Numbers; JSON has none for nan and infinities, which are strings."""
    values = [float(f"{v:.12g}") for v in tensor.detach().reshape(-1).tolist()]
    return [v if math.isfinite(v) else str(v) for v in values]


def case(op, shapes, attrs, function, levels=1009, label=None, inputs=None, label_at=None):
    given = inputs
    if given is None:
        inputs = [numbers(s, i + 1, levels).requires_grad_() for i, s in enumerate(shapes)]
    y = function(*inputs) if label is None else function(*inputs, torch.tensor(label))
    (y * numbers(y.shape, 99)).sum().backward()
    entry = {"op": op, "shapes": shapes, "levels": levels, "attrs": attrs, "y": flat(y),
             "grads": [x.grad if x.grad is None else flat(x.grad) for x in inputs]}
    if label is not None:
        entry["label"] = label
    if label_at is not None:
        entry["label_at"] = label_at
    if given is not None:
        entry["inputs"] = [flat(x) for x in given]
    return entry


def without_gradient(op, attrs, y, *inputs, dtype="f64", result=0, **more):
    """Compares y with result `result` of the op on `inputs`, of dtype `dtype`."""
    return {"op": op, "shapes": [list(x.shape) for x in inputs], "levels": 1, "attrs": attrs, "dtype": dtype,
            "inputs": [flat(x.double()) for x in inputs], "y": flat(y.double()), **more,
            **({"result": result} if result else {})}


def type_of(dtype, *shape):
    """An attribute that is a type."""
    return {"dtype": dtype, "shape": shape}


def convolutions():
    def conv(x, w, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
        attrs = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation),
                 "groups": groups}
        return case("conv2d", [x, w], attrs,
                    lambda a, b: F.conv2d(a, b, None, stride, padding, dilation, groups))
    yield conv([2, 3, 4, 5], [4, 3, 3, 2])
    yield conv([1, 2, 7, 5], [3, 2, 5, 5], padding=(2, 2))
    yield conv([1, 2, 7, 8], [3, 2, 3, 3], stride=(2, 2), padding=(1, 1))
    yield conv([1, 1, 9, 9], [2, 1, 2, 3], stride=(3, 2), padding=(1, 0))
    yield conv([1, 2, 9, 8], [2, 2, 3, 2], stride=(2, 1), padding=(2, 1), dilation=(2, 3))
    yield conv([1, 4, 5, 4], [4, 2, 3, 3], padding=(1, 1), groups=2)
    yield conv([1, 3, 4, 4], [3, 1, 3, 3], stride=(2, 2), padding=(1, 1), groups=3)
    yield conv([3, 5, 1, 1], [2, 5, 1, 1])
    functions = {1: (F.conv1d, F.conv_transpose1d), 2: (F.conv2d, F.conv_transpose2d),
                 3: (F.conv3d, F.conv_transpose3d)}
    for x, w, attrs in (([2, 3, 7], [4, 3, 3], {}),
                        ([1, 4, 9], [6, 2, 2], {"stride": [2], "padding": [1], "dilation": [3],
                                                "groups": 2}),
                        ([1, 2, 3, 2, 4], [2, 2, 2, 1, 3], {}),
                        ([1, 4, 3, 5, 4], [2, 2, 2, 3, 2], {"stride": [1, 2, 3], "groups": 2,
                                                            "padding": [1, 0, 2],
                                                            "dilation": [2, 1, 1]})):
        dims = len(x) - 2
        yield case(f"conv{dims}d", [x, w], attrs,
                   lambda a, b: functions[dims][0](a, b, **attrs))
    for x, w, attrs in (([2, 3, 5], [3, 2, 3], {}),
                        ([1, 2, 4], [2, 2, 2], {"stride": [1], "output_padding": [2],
                                                "dilation": [3], "padding": [1]}),
                        ([2, 2, 2, 3], [2, 2, 3, 2], {"stride": [2, 3], "padding": [1, 0],
                                                      "output_padding": [1, 2]}),
                        ([1, 4, 3, 2], [4, 1, 2, 3], {"groups": 2, "stride": [1, 2],
                                                      "output_padding": [2, 1],
                                                      "dilation": [3, 2]}),
                        ([1, 2, 2, 1, 3], [2, 1, 1, 2, 2], {"stride": [2, 1, 2],
                                                            "padding": [0, 0, 1],
                                                            "output_padding": [1, 0, 1]})):
        dims = len(x) - 2
        yield case(f"conv{dims}d_transpose", [x, w], attrs,
                   lambda a, b: functions[dims][1](a, b, **attrs))


def pools():
    def maximum(x, k, s=None, p=(0, 0), d=(1, 1), levels=1009):
        attrs = {"kernel": list(k), "stride": list(s or k), "padding": list(p), "dilation": list(d)}
        return case("max_pool2d", [x], attrs, lambda a: F.max_pool2d(a, k, s or k, p, d), levels)
    yield maximum([2, 2, 6, 6], (2, 2))
    yield maximum([2, 2, 5, 7], (2, 2))
    yield maximum([1, 2, 7, 8], (3, 3), (2, 2), (1, 1))
    yield maximum([1, 2, 7, 8], (3, 2), (1, 3), (1, 0))
    yield maximum([1, 2, 9, 9], (3, 2), (2, 1), (1, 1), (2, 3))
    yield maximum([1, 2, 8, 8], (2, 2), (3, 3))
    yield maximum([1, 3, 8, 8], (3, 3), (2, 2), (1, 1), levels=3)  # full of ties
    def average(x, k, s=None, p=(0, 0), include=True):
        attrs = {"kernel": list(k), "stride": list(s or k), "padding": list(p),
                 "count_include_pad": include}
        return case("avg_pool2d", [x], attrs,
                    lambda a: F.avg_pool2d(a, k, s or k, p, False, include))
    yield average([2, 2, 6, 6], (2, 2))
    yield average([1, 2, 7, 8], (3, 3), (2, 2), (1, 1))
    yield average([1, 2, 7, 8], (3, 3), (2, 2), (1, 1), include=False)
    yield average([1, 2, 8, 8], (2, 3), (3, 1), (1, 0), include=False)
    functions = {1: (F.max_pool1d, F.avg_pool1d, F.lp_pool1d),
                 2: (F.max_pool2d, F.avg_pool2d, F.lp_pool2d),
                 3: (F.max_pool3d, F.avg_pool3d, F.lp_pool3d)}
    for shape, kernel, stride, padding in (([2, 2, 7], [2], [2], [0]), ([1, 2, 9], [3], [2], [1]),
                                           ([1, 2, 6, 5], [3, 2], [2, 3], [1, 0]),
                                           ([1, 1, 2, 4], [3, 3], [3, 2], [1, 1]),
                                           ([1, 2, 3, 2, 4], [2, 1, 2], [2, 1, 1], [1, 0, 0])):
        window = {"kernel": kernel, "stride": stride, "padding": padding}
        dims = len(kernel)
        for ceil in (False, True):
            yield case(f"max_pool{dims}d", [shape], {**window, "ceil_mode": ceil},
                       lambda a: functions[dims][0](a, kernel, stride, padding, 1, ceil))
            for include in (False, True):
                attrs = {**window, "ceil_mode": ceil, "count_include_pad": include}
                yield case(f"avg_pool{dims}d", [shape], attrs,
                           lambda a: functions[dims][1](a, kernel, stride, padding, ceil, include))
        dilated = {**window, "dilation": [2] * dims, "padding": [1] * dims, "ceil_mode": True}
        if min(shape[2:]) > 2:
            yield case(f"max_pool{dims}d", [shape], {**dilated, "kernel": [2] * dims},
                       lambda a: functions[dims][0](a, 2, stride, 1, 2, True))
        for p in (2.0, 4.0):
            if min(shape[2:]) >= max(kernel):
                yield case("lp_pool", [shape], {"kernel": kernel, "stride": stride, "p": p},
                           lambda a: functions[dims][2](a, p, kernel if dims > 1 else kernel[0],
                                                     stride))
    # PyTorch's lp_pool has no padding, scales the partial windows of ceil_mode, and takes powers of negative numbers.
    positive = lambda *shape: (numbers(shape, 1) + 0.75).requires_grad_()
    for x, padding, padded, ceil, p in ((positive(1, 2, 7), [1, 0], (1, 1), True, 3.0),
                                        (positive(1, 1, 5, 4), [1, 1, 1, 1], (1, 1, 1, 1), False, 1.0),
                                        (positive(1, 1, 5, 4), [0], (0, 1, 0, 0), True, 2.5)):
        attrs = {"kernel": [3], "stride": [2], "padding": padding, "ceil_mode": ceil, "p": p}
        yield case("lp_pool", [list(x.shape)], attrs,
                   lambda a: functions[a.dim() - 2][2](F.pad(a, padded), p, 3, 2), inputs=[x])
    yield case("avg_pool2d", [[1, 1, 4, 5]], {"kernel": [2], "divisor_override": 3},
               lambda a: F.avg_pool2d(a, 2, divisor_override=3))
    for levels in (1009, 3):
        for shape, out in (([2, 3, 5, 5], [1, 1]), ([1, 2, 7, 8], [3, 5]), ([1, 2, 6, 8], [3, 2]),
                           ([1, 1, 3, 4], [5, 7])):
            attrs = {"output": out}
            yield case("adaptive_max_pool2d", [shape], attrs,
                       lambda a: F.adaptive_max_pool2d(a, out), levels)
            if levels == 1009:
                yield case("adaptive_avg_pool2d", [shape], attrs,
                           lambda a: F.adaptive_avg_pool2d(a, out))


def resizes():
    for shape, out in (([2, 2, 2, 3], [4, 6]), ([1, 2, 5, 7], [7, 3]), ([1, 1, 3, 2], [7, 9]),
                       ([1, 2, 6, 8], [3, 2]), ([1, 1, 7, 6], [1, 1]), ([1, 1, 1, 1], [3, 2])):
        for mode in ("nearest", "bilinear", "bicubic"):
            yield case("resize2d", [shape], {"output": out, "mode": mode},
                       lambda a: F.interpolate(a, out, mode=mode))
        for mode in ("bilinear", "bicubic"):
            yield case("resize2d", [shape], {"output": out, "mode": mode, "align_corners": True},
                       lambda a: F.interpolate(a, out, mode=mode, align_corners=True))


def norms():
    def batch_norm(x, eps):
        channels = [x[1]]
        return case("batch_norm", [x, channels, channels, channels, channels], {"eps": eps},
                    lambda a, gamma, beta, mean, var: F.batch_norm(
                        a, mean.detach(), var.detach(), gamma, beta, True, eps=eps))
    yield batch_norm([4, 3, 5, 2], 1e-5)
    yield batch_norm([7, 4], 0.125)
    yield batch_norm([2, 3, 6], 1e-3)
    for axis, operands in ((-1, 3), (1, 3), (-1, 2), (0, 1)):
        shape = [2, 3, 4]
        scale = shape[axis:]
        yield case("layer_norm", ([shape, scale, scale])[:operands], {"axis": axis, "eps": 1e-3},
                   lambda a, *p: F.layer_norm(a, scale, *p, eps=1e-3))
        yield case("rms_norm", ([shape, scale])[:operands], {"axis": axis, "eps": 1e-3},
                   lambda a, *p: F.rms_norm(a, scale, *p, eps=1e-3))
    yield case("group_norm", [[2, 6, 2, 3], [6], [6]], {"groups": 3, "eps": 1e-3},
               lambda a, w, b: F.group_norm(a, 3, w, b, 1e-3))
    yield case("group_norm", [[3, 4]], {"groups": 2}, lambda a: F.group_norm(a, 2))
    yield case("instance_norm", [[2, 3, 2, 3], [3], [3]], {"eps": 1e-3},
               lambda a, w, b: F.instance_norm(a, None, None, w, b, True, 0.0, 1e-3))
    for size in (2, 3, 5):
        yield case("lrn", [[2, 4, 3]], {"size": size, "alpha": 0.5, "beta": 0.75, "k": 1.5},
                   lambda a: F.local_response_norm(a, size, 0.5, 0.75, 1.5))
    for p, axis, eps in ((1, 1, 1e-12), (2, -1, 1e-12), (2, 0, 0.75)):
        yield case("lp_normalize", [[2, 3, 2]], {"p": p, "axis": axis, "eps": eps},
                   lambda a: F.normalize(a, p, axis, eps))


def losses():
    for axis in (-1, 0, 1):
        yield case("softmax", [[3, 4, 2]], {"axis": axis}, lambda a: F.softmax(a, axis))
        yield case("log_softmax", [[3, 4, 2]], {"axis": axis}, lambda a: F.log_softmax(a, axis))
    yield case("softmax_cross_entropy", [[5, 7]], {},
               lambda a, l: F.cross_entropy(a, l, reduction="none"), label=[0, 6, 3, 3, 1])
    yield case("mse_loss", [[3, 5], [3, 5]], {},
               lambda a, b: F.mse_loss(a, b, reduction="none"))


def class_losses():
    """PyTorch has no gradient of class weights, so weighted losses are written out and compared."""
    def weighted(loss, x, w, label, reduction, ignore):
        counts = label != ignore
        rows = x.movedim(1, -1)
        own = label.where(counts, 0)
        log_p = rows if loss is F.nll_loss else F.log_softmax(rows, -1)
        weights = w[own] * counts
        y = -weights * log_p.gather(-1, own[..., None])[..., 0]
        y = {"none": y, "sum": y.sum(), "mean": y.sum() / weights.sum()}[reduction]
        torch.testing.assert_close(y.detach(), loss(x.detach(), label, w.detach(),
                                                    reduction=reduction, ignore_index=ignore))
        return y
    labels = {2: [0, 3, 2, 2, 1], 3: [[1, 0], [2, 2], [3, 1]]}
    for op, loss in (("nll_loss", F.nll_loss), ("softmax_cross_entropy", F.cross_entropy)):
        for shape in ([5, 4], [3, 4, 2]):
            label = labels[len(shape)]
            for reduction in ("none", "mean") if len(shape) == 2 else ("mean", "sum"):
                attrs = {"axis": 1, "reduction": reduction, "ignore_index": [2]}
                yield case(op, [shape], attrs,
                           lambda a, l: loss(a, l, reduction=reduction, ignore_index=2),
                           label=label)
                yield case(op, [shape, [4]], attrs,
                           lambda a, w, l: weighted(loss, a, w, l, reduction, 2),
                           label=label, label_at=1,
                           inputs=[numbers(shape, 1).requires_grad_(),
                                   (numbers([4], 2) + 1).requires_grad_()])

    def smoothed(x, w, label):
        log_p, share = F.log_softmax(x, 1), 0.2 / 4
        y = -(0.8 * w[label] * log_p.gather(1, label[:, None])[:, 0] + share * (w * log_p).sum(1))
        y = y.sum() / w[label].sum()
        torch.testing.assert_close(y.detach(), F.cross_entropy(
            x.detach(), label, w.detach(), label_smoothing=0.2))
        return y

    def soft(x, target, w):
        y = -(w * target * F.log_softmax(x, 1)).sum() / len(x)
        torch.testing.assert_close(y.detach(), F.cross_entropy(
            x.detach(), target.detach(), w.detach()))
        return y
    yield case("softmax_cross_entropy", [[5, 4], [4]],
               {"reduction": "mean", "label_smoothing": 0.2}, smoothed, label=labels[2], label_at=1)
    yield case("softmax_cross_entropy", [[3, 4], [3, 4], [4]], {"reduction": "mean"}, soft)


def soft_labels():
    for reduction in ("mean", "sum"):
        for smoothing in (0.0, 0.25):
            attrs = {"reduction": reduction, "label_smoothing": smoothing, "axis": 1}
            options = {"reduction": reduction, "label_smoothing": smoothing}
            yield case("softmax_cross_entropy", [[3, 4], [3, 4]], attrs,
                       lambda a, b: F.cross_entropy(a, b, **options))
            yield case("softmax_cross_entropy", [[2, 3, 2]], attrs,
                       lambda a, l: F.cross_entropy(a, l, **options), label=[[1, 0], [2, 2]])


def reduced(y, reduction):
    return {"none": y, "mean": y.mean(), "sum": y.sum()}[reduction]


def focal(x, target, reduction, alpha, gamma):
    """torchvision.ops.sigmoid_focal_loss"""
    p = torch.sigmoid(x)
    entropy = F.binary_cross_entropy_with_logits(x, target, reduction="none")
    y = entropy * (1 - (p * target + (1 - p) * (1 - target))) ** gamma
    if alpha >= 0:
        y = (alpha * target + (1 - alpha) * (1 - target)) * y
    return reduced(y, reduction)


def pair_losses(reductions=("none", "mean")):
    def pair(op, function, x=None, target=None, **attrs):
        """`function` takes `reduction` and `attrs`; operands are 12 numbers."""
        for reduction in reductions:
            given = [torch.tensor(v, dtype=torch.float64) if v else 2 * numbers([12], i + 1)
                     for i, v in enumerate((x, target))]
            inputs = [v.clone().detach().requires_grad_() for v in given]
            yield case(op, [[12], [12]], {"reduction": reduction, **attrs},
                       lambda a, b: function(a, b, reduction=reduction, **attrs), inputs=inputs)
    nan, inf = math.nan, math.inf
    odd = [1.0, nan, 0.5, 0.5, inf, -inf, 2.5, -0.25, 0.0, 3.0, -4.0, inf]
    even = [nan, 1.0, 0.5, 1.0, 1.0, inf, 0.0, -0.0, 0.0, -2.0, -3.0, inf]
    shares = [0.0, 1.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 0.9375, 0.0625, 0.5]
    bits = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.5]
    inner = [0.999, 0.001] + shares[2:]
    scores = [40.0, -40.0, 1000.0, -1000.0, 3.0, -2.0, 1.0, -1.0, 0.0, 0.5, -0.5, 0.25]
    signs = [-1.0, 1.0] * 6
    yield from pair("mse_loss", F.mse_loss, odd, even)
    yield from pair("l1_loss", F.l1_loss, odd, even)
    yield from pair("smooth_l1_loss", F.smooth_l1_loss, odd, even, beta=0.5)
    yield from pair("smooth_l1_loss", F.smooth_l1_loss, beta=0.0)
    yield from pair("huber_loss", F.huber_loss, odd, even, delta=0.75)
    yield from pair("kl_div", F.kl_div, None, inner)
    yield from pair("kl_div", F.kl_div, log_target=True)
    yield from pair("binary_cross_entropy", F.binary_cross_entropy, inner, shares)
    yield from pair("binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits,
                    scores, bits)

    def hinge(x, target, reduction):
        return reduced(torch.relu(1 - target * x), reduction)

    def weighted_logits(x, target, weight, reduction):
        """PyTorch has no gradient of pos_weight, so the loss is written out and compared."""
        y = reduced(F.softplus(-x) * target * weight + F.softplus(x) * (1 - target), reduction)
        torch.testing.assert_close(y.detach(), F.binary_cross_entropy_with_logits(
            x.detach(), target.detach(), pos_weight=weight.detach(), reduction=reduction))
        return y
    yield from pair("hinge_loss", hinge, scores, signs)
    yield from pair("focal_loss", focal, None, bits, alpha=0.25, gamma=2.0)
    yield from pair("focal_loss", focal, None, bits, alpha=-1.0, gamma=1.5)
    for reduction in reductions:
        attrs = {"reduction": reduction}
        yield case("binary_cross_entropy_with_logits", [[3, 4], [3, 4], [4]], attrs,
                   lambda a, b, w: weighted_logits(a, b, w, reduction))
        yield case("cosine_embedding_loss", [[4, 3], [4, 3]], {"margin": -0.5, **attrs},
                   lambda a, b, l: F.cosine_embedding_loss(a, b, l, -0.5, reduction=reduction),
                   label=[1, -1, -1, 1])
        for p, swap in ((2, False), (2, True), (1, True)):
            yield case("triplet_margin_loss", [[4, 3]] * 3,
                       {"margin": 0.5, "p": p, "swap": swap, **attrs},
                       lambda a, b, c: F.triplet_margin_loss(a, b, c, 0.5, p, 1e-6, swap,
                                                             reduction=reduction))
        yield case("dice_loss", [[3, 4], [3, 4]], {"smooth": 2.0, **attrs},
                   lambda a, b: reduced(
                       1 - (2 * (a * b).sum(1) + 2) / (a.sum(1) + b.sum(1) + 2), reduction))


def nonfinite():
    nan, inf = math.nan, math.inf
    rows = [[nan, 1.0, -2.0, 0.0], [3.0, 3.0, -1.0, inf], [-inf, -inf, -inf, -inf],
            [2.0, -3.0, 2.0, -3.0], [nan, nan, inf, -inf]]
    others = [[1.0, nan, -2.0, 0.5], [nan, 3.0, -2.0, inf], [0.0, -inf, inf, 1.0],
              [2.0, 3.0, 1.0, -3.0], [nan, 1.0, nan, -inf]]

    def special(op, attrs, function, *values):
        inputs = [torch.tensor(v, dtype=torch.float64).requires_grad_() for v in values]
        return case(op, [list(x.shape) for x in inputs], attrs, function, inputs=inputs)
    yield special("relu", {}, F.relu, rows)
    yield special("abs", {}, torch.abs, rows)
    yield special("gelu", {}, F.gelu, rows)
    yield special("sigmoid", {}, torch.sigmoid, rows)
    yield special("tanh", {}, torch.tanh, rows)
    yield special("maximum", {}, torch.maximum, rows, others)
    yield special("minimum", {}, torch.minimum, rows, others)
    yield special("softmax", {"axis": 1}, lambda a: F.softmax(a, 1), rows)
    yield special("log_softmax", {"axis": 1}, lambda a: F.log_softmax(a, 1), rows)
    for keep in (False, True):
        attrs = {"axes": [1], "keep_dims": keep}
        yield special("max", attrs, lambda a: torch.amax(a, 1, keep), rows)
        yield special("min", attrs, lambda a: torch.amin(a, 1, keep), rows)
    image = [[[[-inf, -inf, 1.0], [-inf, -inf, nan], [-inf, -inf, -inf]]]]
    for kernel, stride, padding in ((2, 2, 1), (3, 1, 1), (3, 2, 1), (2, 1, 0)):
        attrs = {"kernel": [kernel], "stride": [stride], "padding": [padding]}
        yield special("max_pool2d", attrs,
                      lambda a: F.max_pool2d(a, kernel, stride, padding), image)
    yield special("adaptive_max_pool2d", {"output": [2]}, lambda a: F.adaptive_max_pool2d(a, 2),
                  image)


def functions():
    nan, inf = math.nan, math.inf
    values = torch.tensor([-40.0, -1.5, -1.0, -0.6, -0.0, 0.0, 0.3, 1.0, 2.0, 1e5, inf, -inf, nan],
                          dtype=torch.float64)
    for op in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "log2", "exp2", "neg", "square",
               "sqrt", "exp", "expm1", "log", "log1p", "erf"):
        yield case(op, [[13]], {}, getattr(torch, op), inputs=[values.clone().requires_grad_()])
    # Without -0, where PyTorch's gradient has the other sign than at 0.
    yield case("rsqrt", [[8]], {}, torch.rsqrt, inputs=[values[5:].clone().requires_grad_()])
    yield case("gelu", [[10]], {"approximate": "tanh"}, lambda a: F.gelu(a, approximate="tanh"),
               inputs=[values[:-3].clone().requires_grad_()])


def arithmetic():
    nan, inf = math.nan, math.inf
    pairs = [[0.0, 0.0, -0.0, 1.0, inf, -inf, inf, nan, 2.0, -3.0], [0.0, -2.0, 1.0, 0.0, inf, 2.0, 0.0, 1.0, nan, 0.5]]
    powers = [[0.0, 0.0, 0.0, -2.0, -2.0, -2.0, 1.0, nan, nan, inf, 2.0, 2.0],
              [0.0, 2.0, -1.0, 3.0, 0.5, 0.0, nan, 0.0, 2.0, -1.0, inf, -inf]]
    for op, values in (("add", pairs), ("sub", pairs), ("mul", pairs), ("div", pairs), ("pow", powers)):
        inputs = [torch.tensor(v, dtype=torch.float64).requires_grad_() for v in values]
        yield case(op, [list(x.shape) for x in inputs], {}, getattr(torch, op), inputs=inputs)
        inputs = [(numbers(s, i + 1) + 1).requires_grad_() for i, s in enumerate(([2, 3], [2, 1]))]
        yield case(op, [[2, 3], [2, 1]], {}, getattr(torch, op), inputs=inputs)
    yield case("matmul", [[2, 3], [3, 4]], {}, torch.matmul)
    yield case("matmul", [[2, 1, 3, 2], [2, 2, 3]], {"transpose_a": True, "transpose_b": True},
               lambda a, b: a.mT @ b.mT)
    yield case("matmul", [[2, 2, 3], [3, 2]], {}, torch.matmul)


def logic():
    nan, inf = math.nan, math.inf
    a, b = torch.tensor([[1.0, 2.0, -0.0, nan, nan, inf, inf, -inf],
                         [2.0, 2.0, 0.0, 1.0, nan, inf, -inf, nan]], dtype=torch.float64)
    for op, function in (("equal", torch.eq), ("not_equal", torch.ne), ("less", torch.lt), ("less_equal", torch.le),
                         ("greater", torch.gt), ("greater_equal", torch.ge)):
        yield without_gradient(op, {}, function(a, b), a, b)
    yield without_gradient("is_nan", {}, torch.isnan(b), b)
    yield without_gradient("is_finite", {}, torch.isfinite(b), b)
    yield without_gradient("is_inf", {}, torch.isinf(b), b)
    yield without_gradient("is_inf", {"detect_negative": False}, torch.isposinf(b), b)
    yield without_gradient("is_inf", {"detect_positive": False}, torch.isneginf(b), b)
    a, b = torch.tensor([[False, False, True, True], [False, True, False, True]])
    for op in ("logical_and", "logical_or", "logical_xor"):
        yield without_gradient(op, {}, getattr(torch, op)(a, b), a, b, dtype="bool")
    yield without_gradient("logical_not", {}, torch.logical_not(a), a, dtype="bool")
    yield case("where", [[2, 3], [3]], {}, lambda a, b, c: torch.where(c, a, b), label=[[True], [False]], label_at=0)
    yield case("where", [[3], [1, 2, 1]], {}, lambda a, b, c: torch.where(c, a, b), label=[True, False, True],
               label_at=0)
    for shape, mask in (([2, 3], [[True], [False]]), ([3], [[True, False, True], [False, False, True]])):
        yield case("masked_fill", [shape], {"value": -2.5}, lambda a, m: torch.masked_fill(a, m, -2.5), label=mask)
    x = torch.tensor([nan, inf, 1.0], dtype=torch.float64).requires_grad_()
    yield case("masked_fill", [[3]], {"value": 0.0}, lambda a, m: torch.masked_fill(a, m, 0), inputs=[x],
               label=[True, False, False])


def sources():
    for dtype, torchs, start, end, step in (("f64", torch.float64, 0.5, 1.75, 0.25), ("i64", torch.int64, 3, -5, -2)):
        y = torch.arange(start, end, step, dtype=torchs)
        yield without_gradient("arange", {"type": type_of(dtype, len(y)), "start": float(start), "step": float(step)}, y)
    yield without_gradient("fill", {"type": type_of("f64", 2, 2), "value": 0.25},
                           torch.full((2, 2), 0.25, dtype=torch.float64))
    label = [[0, 2], [3, 1]]
    yield without_gradient("one_hot", {"to": type_of("f64", 2, 2, 4)}, F.one_hot(torch.tensor(label), 4), label=label)
    yield without_gradient("dirac", {"type": type_of("f64", 4, 3, 3, 2), "groups": 2},
                           torch.nn.init.dirac_(torch.empty(4, 3, 3, 2), 2))

    def slopes(heads):
        """get_slopes of the code of Press, Smith and Lewis."""
        power = 2 ** math.floor(math.log2(heads))
        ratio = 2.0 ** (-8 / power)
        own = [ratio ** (head + 1) for head in range(power)]
        return own + slopes(2 * power)[::2][:heads - power] if heads > power else own
    for heads, queries, keys in ((4, 3, 3), (6, 2, 4)):
        distance = torch.arange(keys)[None] - torch.arange(queries)[:, None] - (keys - queries)
        y = -torch.tensor(slopes(heads), dtype=torch.float64)[:, None, None] * distance.abs()
        yield without_gradient("alibi", {"type": type_of("f64", heads, queries, keys)}, y)


def casts():
    values = [-2.75, -1.5, -0.25, 0.0, 0.3, 1.0, 2.5, 300.7]
    x = torch.tensor(values, dtype=torch.float64)
    for to, torchs in (("i64", torch.int64), ("i32", torch.int32), ("bool", torch.bool), ("f32", torch.float32),
                       ("f16", torch.float16), ("bf16", torch.bfloat16)):
        yield without_gradient("cast", {"to": type_of(to)}, x.to(torchs), x)
    truth = torch.tensor([True, False])
    yield without_gradient("cast", {"to": type_of("f64")}, truth.double(), truth, dtype="bool")


def products():
    zeros = [[0.5, 2.0, -3.0], [0.0, 2.0, -3.0], [1.5, 0.0, 0.0]]

    def product(attrs, function):
        x = torch.tensor(zeros, dtype=torch.float64).requires_grad_()
        return case("prod", [[3, 3]], attrs, function, inputs=[x])
    yield product({}, torch.prod)
    yield product({"axes": [0]}, lambda a: torch.prod(a, 0))
    yield product({"axes": [1], "keep_dims": True}, lambda a: torch.prod(a, 1, True))
    yield case("prod", [[2, 3, 4]], {"axes": [-1]}, lambda a: torch.prod(a, -1))
    yield case("prod", [[2, 3]], {}, torch.prod)
    odd = torch.tensor([[math.nan, 0.0, 1.0], [math.inf, 0.0, 2.0], [0.0, 0.0, math.nan], [0.0, 3.0, 4.0]],
                       dtype=torch.float64).requires_grad_()
    yield case("prod", [[4, 3]], {"axes": [1]}, lambda a: torch.prod(a, 1), inputs=[odd])


def activations():
    nan, inf = math.nan, math.inf
    values = [-inf, -40.0, -6.0, -3.0, -1.5, -0.0, 0.0, 0.3, 3.0, 6.0, 21.0, inf, nan]

    def activation(op, attrs, function, values=values):
        x = torch.tensor(values, dtype=torch.float64).requires_grad_()
        return case(op, [[len(values)]], attrs, function, inputs=[x])
    yield activation("relu6", {}, F.relu6)
    yield activation("leaky_relu", {}, F.leaky_relu)
    yield activation("leaky_relu", {"negative_slope": -0.5}, lambda a: F.leaky_relu(a, -0.5))
    yield activation("elu", {"alpha": 0.5}, lambda a: F.elu(a, 0.5))
    yield activation("selu", {}, F.selu)
    yield activation("celu", {"alpha": 2.5}, lambda a: F.celu(a, 2.5))
    yield activation("silu", {}, F.silu)
    yield activation("mish", {}, F.mish)
    yield activation("softplus", {}, F.softplus)
    yield activation("softplus", {"beta": 2.0, "threshold": 5.0}, lambda a: F.softplus(a, 2, 5))
    yield activation("softsign", {}, F.softsign, values[1:-2])
    # F.hardsigmoid's gradient rounds 1 / 6 to f32.
    yield activation("hard_sigmoid", {}, lambda a: F.relu6(a + 3) / 6, values[:-1])
    yield activation("hard_swish", {}, F.hardswish)
    yield activation("log_sigmoid", {}, F.logsigmoid)
    yield case("prelu", [[2, 3, 4], [3]], {}, F.prelu, levels=5)
    yield case("prelu", [[5], [1]], {}, F.prelu)


def steps():
    nan, inf = math.nan, math.inf
    values = [-inf, -2.5, -1.5, -1.0, -0.5, -0.0, 0.0, 0.4, 0.5, 1.0, 1.5, 2.0, 2.5, inf, nan]

    def step(op, attrs, function):
        x = torch.tensor(values, dtype=torch.float64).requires_grad_()
        return case(op, [[len(values)]], attrs, function, inputs=[x])
    for op in ("sign", "ceil", "floor", "round", "trunc"):
        result = step(op, {}, getattr(torch, op))
        assert not any(result["grads"][0])
        yield {**result, "grads": [None]}
    yield step("reciprocal", {}, torch.reciprocal)
    yield step("clip", {"min": -1.0, "max": 2.0}, lambda a: torch.clip(a, -1, 2))
    yield step("clip", {"min": -1.0}, lambda a: torch.clip(a, min=-1))
    # Without an infinite a, or an infinite b of the other sign, where gradients of b differ.
    pairs = [[-7.0, 7.0, -6.0, 6.0, 5.5, -5.5, 1.0, nan, 1.0],
             [3.0, -3.0, 3.0, -3.0, 2.0, 2.0, inf, 2.0, 0.0]]
    yield case("mod", [[9], [9]], {}, torch.remainder,
               inputs=[torch.tensor(p, dtype=torch.float64).requires_grad_() for p in pairs])
    yield case("mod", [[2, 3], [3]], {}, torch.remainder)


def shapes():
    yield case("tile", [[2, 3]], {"repeats": [2, 1, 3]}, lambda a: torch.tile(a, (2, 1, 3)))
    yield case("tile", [[2, 3]], {"repeats": [2]}, lambda a: torch.tile(a, (2,)))
    for axis in (0, -1):
        yield case("stack", [[2, 3], [2, 3]], {"axis": axis}, lambda a, b: torch.stack((a, b), axis))
    yield case("split", [[2, 5]], {"sizes": [2, 3], "axis": 1},
               lambda a: torch.split(a, [2, 3], 1)[0])
    yield case("flip", [[2, 3]], {"axes": [0, -1]}, lambda a: torch.flip(a, (0, -1)))
    yield case("roll", [[3, 4]], {"shifts": [1, -6], "axes": [0, 1]},
               lambda a: torch.roll(a, (1, -6), (0, 1)))
    yield case("squeeze", [[1, 3, 1]], {"axes": [1, 2]}, lambda a: torch.squeeze(a, (1, 2)))
    yield case("unsqueeze", [[3]], {"axes": [-1]}, lambda a: torch.unsqueeze(a, -1))
    for diagonal in (-1, 2):
        attrs = {"diagonal": diagonal}
        yield case("tril", [[2, 3, 4]], attrs, lambda a: torch.tril(a, diagonal))
        yield case("triu", [[2, 3, 4]], attrs, lambda a: torch.triu(a, diagonal))
    for mode, torchs in (("reflect", "reflect"), ("edge", "replicate")):
        attrs = {"low": [0, 0, 2], "high": [0, 0, 3], "mode": mode}
        yield case("pad", [[1, 2, 4]], attrs, lambda a: F.pad(a, (2, 3), torchs))
        attrs = {"low": [0, 0, 1, 2], "high": [0, 0, 2, 0], "mode": mode}
        yield case("pad", [[1, 1, 3, 4]], attrs, lambda a: F.pad(a, (2, 0, 1, 2), torchs))
    yield case("pad", [[2, 3]], {"low": [1, 0], "high": [0, 2], "value": -1.5},
               lambda a: F.pad(a, (0, 2, 1, 0), value=-1.5))
    yield case("reshape", [[2, 3]], {"to": type_of("f64", 3, 2)}, lambda a: a.reshape(3, 2))
    yield case("flatten", [[2, 2, 3]], {"axis": 1}, lambda a: torch.flatten(a, 1))
    yield case("transpose", [[2, 3, 2]], {"perm": [2, 0, 1]}, lambda a: torch.permute(a, (2, 0, 1)))
    yield case("transpose", [[2, 3]], {}, torch.t)
    yield case("broadcast_to", [[3, 1]], {"to": type_of("f64", 2, 3, 2)}, lambda a: torch.broadcast_to(a, (2, 3, 2)))


def reductions():
    nan, inf = math.nan, math.inf
    rows = [[nan, 1.0, -2.0], [3.0, inf, -1.0], [-inf, -inf, -inf], [-inf, inf, 2.0],
            [0.0, 0.0, 0.0], [900.0, 901.0, -900.0], [1.0, 1.0, -inf], [1.0, nan, nan]]

    def special(op, attrs, function):
        x = torch.tensor(rows, dtype=torch.float64).requires_grad_()
        return case(op, [[8, 3]], attrs, function, inputs=[x])
    norm = torch.linalg.vector_norm
    functions = (("logsumexp", torch.logsumexp), ("norm_l2", lambda a, d: norm(a, 2, d)),
                 ("norm_l1", lambda a, d: norm(a, 1, d)), ("sum", torch.sum), ("mean", torch.mean))
    for op, function in functions:
        yield special(op, {"axes": [1]}, lambda a: function(a, 1))
        yield case(op, [[2, 3, 2]], {"axes": [0, 2]}, lambda a: function(a, (0, 2)))
    for op, function in (("var", torch.var), ("std", torch.std)):
        for correction in (0, 1, 3):
            attrs = {"axes": [1], "correction": correction}
            yield special(op, attrs, lambda a: function(a, 1, correction=correction))
        yield case(op, [[2, 3, 2]], {"axes": [0, 2]}, lambda a: function(a, (0, 2)))

    x = torch.tensor(rows, dtype=torch.float64)
    for op, function in (("argmin", torch.argmin), ("argmax", torch.argmax)):
        for axis in (0, 1):
            yield without_gradient(op, {"axis": axis}, function(x, axis), x)
    for result in (0, 1):
        y = torch.max(x, 1)[result]
        yield without_gradient("max_index", {"axes": [1]}, y, x, result=result)
    truth = torch.tensor([[True, True], [True, False], [False, False]])
    for op, function in (("any", torch.any), ("all", torch.all)):
        for axis in (0, 1):
            yield without_gradient(op, {"axes": [axis]}, function(truth, axis), truth, dtype="bool")


def indices():
    zeros = [[0.5, 2.0, -3.0, 1.5], [0.0, 2.0, -3.0, 0.5], [1.5, 0.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0]]
    for axis in (0, 1):
        x = torch.tensor(zeros, dtype=torch.float64).requires_grad_()
        yield case("cumprod", [[4, 4]], {"axis": axis}, lambda a: torch.cumprod(a, axis), inputs=[x])
        yield case("cumsum", [[3, 4]], {"axis": axis}, lambda a: torch.cumsum(a, axis))
    result = case("stop_gradient", [[2, 3]], {}, lambda a: a.detach() + 0 * a)
    assert not any(result["grads"][0])
    yield {**result, "grads": [None]}
    for k, axis, largest in ((2, -1, True), (3, 0, False)):
        attrs = {"k": k, "axis": axis, "largest": largest}
        yield case("topk", [[3, 5]], attrs, lambda a: torch.topk(a, k, axis, largest)[0])
    ties = numbers([3, 7], 1, 3)
    for descending in (False, True):
        y = torch.argsort(ties, dim=-1, descending=descending, stable=True)
        yield {"op": "argsort", "shapes": [[3, 7]], "levels": 3, "attrs": {"descending": descending},
               "y": flat(y.double())}
        for op, attrs, y in (("sort", {"descending": descending},
                              torch.sort(ties, dim=-1, descending=descending, stable=True)[1]),
                             ("topk", {"k": 3, "axis": 0, "largest": descending},
                              torch.topk(numbers([3, 7], 1), 3, 0, descending)[1])):
            yield {"op": op, "shapes": [[3, 7]], "levels": 3 if op == "sort" else 1009, "attrs": attrs, "result": 1,
                   "y": flat(y.double())}
    for axis in (0, 1):
        yield case("cumsum", [[3, 4]], {"axis": axis, "reverse": True}, lambda a: a.flip(axis).cumsum(axis).flip(axis))
    index = [[0, 4, 2], [1, 1, 3]]
    yield case("scatter", [[2, 5], [2, 3]], {"axis": 1}, lambda a, u, i: a.scatter(1, i, u), label=[[0, 4, 2], [1, 0, 3]],
               label_at=1)
    for reduce, torchs in (("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin")):
        yield case("scatter", [[2, 5], [2, 3]], {"axis": 1, "reduce": reduce},
                   lambda a, u, i: a.scatter_reduce(1, i, u, torchs), label=index, label_at=1)
    yield case("scatter", [[3, 5], [2, 3]], {"axis": 1, "reduce": "add"},  # of a part of x
               lambda a, u, i: a.scatter_reduce(1, i, u, "sum"), label=index, label_at=1)
    ones = [torch.ones(s, dtype=torch.float64).requires_grad_() for s in ([2, 5], [2, 3])]
    yield case("scatter", [[2, 5], [2, 3]], {"axis": 1, "reduce": "max"},  # ties
               lambda a, u, i: a.scatter_reduce(1, i, u, "amax"), label=index, label_at=1, inputs=ones)
    yield case("index_add", [[4, 3], [5, 3]], {"alpha": -2.0},
               lambda a, u, i: torch.index_add(a, 0, i, u, alpha=-2), label=[0, 3, 3, 1, 0],
               label_at=1)
    yield case("index_add", [[2, 3], [2, 4]], {"axis": 1}, lambda a, u, i: torch.index_add(a, 1, i, u),
               label=[2, 0, 0, 1], label_at=1)
    values = [numbers([4, 2], 1), numbers([2, 2], 2)]
    yield without_gradient("index_copy", {}, values[0].index_copy(0, torch.tensor([3, 0]), values[1]), *values,
                           label=[3, 0], label_at=1)
    yield case("segment_sum", [[5, 2]], {"segments": 4},
               lambda a, i: torch.zeros(4, 2, dtype=a.dtype).index_add(0, i, a), label=[0, 3, 3, 1, 0])


def embeddings():
    for padding in ([], [2], [-1]):
        idx = padding[0] if padding else None
        yield case("embedding", [[5, 3]], {"padding_idx": padding},
                   lambda w, i: F.embedding(i, w, idx), label=[[0, 2], [4, 2], [1, 4]])
        for mode in ("sum", "mean", "max"):
            yield case("embedding_bag", [[5, 3]], {"mode": mode, "padding_idx": padding},
                       lambda w, i: F.embedding_bag(i, w, mode=mode, padding_idx=idx),
                       label=[[0, 2, 1], [4, 4, 2], [2, 2, 2]])
        yield case("embedding_bag", [[5, 3], [3, 2]], {"mode": "sum", "padding_idx": padding},
                   lambda w, s, i: F.embedding_bag(i, w, mode="sum", padding_idx=idx,
                                                   per_sample_weights=s),
                   label=[[0, 2], [4, 2], [1, 4]], label_at=1)


def rotations():
    """PyTorch has no rotary embedding: complex numbers turn, as in the code of Llama and GPT-J."""
    def times(x, factor, interleaved):
        """The first elements of x, as complex numbers, times `factor`; then the others."""
        width = 2 * factor.shape[-1]
        pairs = x[..., :width].unflatten(-1, (-1, 2) if interleaved else (2, -1))
        dim = -1 if interleaved else -2
        z = torch.complex(*pairs.unbind(dim)) * factor
        return torch.cat((torch.stack((z.real, z.imag), dim).flatten(-2), x[..., width:]), -1)

    def turned(x, theta, interleaved, width=None, position=None):
        width = width or x.shape[-1]
        position = torch.arange(x.shape[-2]) if position is None else position
        angle = position[..., None] * theta ** (-2 * torch.arange(width // 2, dtype=x.dtype) / width)
        return times(x, torch.polar(torch.ones_like(angle), angle), interleaved)
    for interleaved in (False, True):
        for theta in (10000.0, 50.0):
            attrs = {"theta": theta, "interleaved": interleaved}
            yield case("rotary_embedding", [[2, 5, 6]], attrs,
                       lambda a: turned(a, theta, interleaved))
        attrs = {"interleaved": interleaved, "dims": 4}
        yield case("rotary_embedding", [[2, 2, 2, 6]], attrs, lambda a, p: turned(a, 1e4, interleaved, 4, p),
                   label=[[[0, 7]], [[5, 1]]])
        yield case("apply_rotary_embedding", [[2, 3, 6], [3, 2], [3, 2]], {"interleaved": interleaved},
                   lambda a, c, s: times(a, torch.complex(c, s), interleaved))


def attention():
    for q, k, v, mask, causal in (([2, 2, 3, 4], [2, 2, 5, 4], [2, 2, 5, 3], None, False),
                                  ([1, 4, 5, 4], [1, 2, 5, 4], [1, 2, 5, 4], None, True),
                                  ([1, 2, 3, 4], [1, 2, 6, 4], [1, 2, 6, 4], None, True),
                                  ([1, 2, 6, 4], [1, 2, 3, 4], [1, 2, 3, 4], None, True),
                                  ([2, 4, 3, 2], [2, 2, 5, 2], [2, 2, 5, 2], [2, 1, 3, 5], False),
                                  ([1, 1, 2, 2], [1, 1, 4, 2], [1, 1, 4, 2], [4], False)):
        sizes = [q, k, v] + ([] if mask is None else [mask])
        result = case("scaled_dot_product_attention", sizes, {"causal": causal},
                      lambda a, b, c, m=None: F.scaled_dot_product_attention(
                          a, b, c, m, is_causal=causal, enable_gqa=True))
        yield {**result, "grads": result["grads"][:3] + [None] * (mask is not None)}
    visible = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])  # query 1 sees no key
    for causal in (False, True):
        seen = visible & torch.ones(3, 4, dtype=torch.bool).tril() if causal else visible
        yield case("scaled_dot_product_attention", [[1, 2, 3, 2], [1, 1, 4, 2], [1, 1, 4, 2]],
                   {"causal": causal, "scale": 0.3}, lambda a, b, c, m: F.scaled_dot_product_attention(
                       a, b, c, seen, scale=0.3, enable_gqa=True), label=visible.tolist())


def selections():
    for axis, label in ((0, [[1, 0], [2, 2]]), (1, [3]), (-1, [0, 0, 1])):
        yield case("gather", [[3, 4, 2]], {"axis": axis},
                   lambda a, i: torch.stack([a.select(axis, n) for n in i.flatten().tolist()], axis)
                   .unflatten(axis, i.shape), label=label)
    yield case("take_along_axis", [[2, 4]], {"axis": 1}, lambda a, i: torch.gather(a, 1, i),
               label=[[0, 3, 3], [2, 2, 1]])
    yield case("take_along_axis", [[3, 3, 2]], {"axis": 1}, lambda a, i: torch.gather(a, 1, i),
               label=[[[0], [2], [2]], [[1], [2], [1]]])  # of a part of x
    yield case("gather_nd", [[3, 4, 2]], {}, lambda a, i: a[i[..., 0], i[..., 1]],
               label=[[0, 3], [2, 1], [0, 3]])
    yield case("gather_nd", [[2, 4, 2]], {"batch_dims": 1}, lambda a, i: a[torch.arange(2)[:, None], i[..., 0]],
               label=[[[3], [3], [0]], [[1], [2], [1]]])
    yield case("scatter_nd", [[3, 4], [2, 4]], {"reduce": "add"},
               lambda a, u, i: a.index_put((i[:, 0],), u, accumulate=True), label=[[2], [2]],
               label_at=1)
    for descending in (False, True):
        yield case("sort", [[3, 5]], {"axis": 0, "descending": descending},
                   lambda a: torch.sort(a, 0, descending)[0])
    yield case("slice", [[4, 5]], {"starts": [1, 0], "stops": [4, 5], "steps": [2, 3]},
               lambda a: a[1:4:2, 0:5:3])
    yield case("concat", [[2, 3], [2, 1]], {"axis": 1}, lambda a, b: torch.cat((a, b), 1))


def contractions():
    for equation, *sizes in (("ij,jk->ik", [2, 3], [3, 4]), ("bij,bjk", [2, 3, 4], [2, 4, 2]),
                             ("bhqd,bhkd->bhqk", [2, 2, 3, 4], [2, 2, 5, 4]),
                             ("...ij,...jk->...ik", [2, 3, 1, 2], [3, 2, 2]),
                             ("Ab,bC", [2, 3], [3, 2]), ("ii->i", [3, 3]), ("ii", [3, 3]),
                             ("iij,ijk->ik", [2, 2, 3], [2, 3, 4]), ("...i->...", [2, 3, 4]),
                             ("ij,jk,kl->il", [2, 3], [3, 4], [4, 2]), ("i,j", [3], [4])):
        yield case("einsum", sizes, {"equation": equation}, lambda *x: torch.einsum(equation, *x))
    yield case("bilinear", [[2, 3, 2], [2, 3, 4], [3, 2, 4], [3]], {}, F.bilinear)
    yield case("bilinear", [[3, 2], [3, 4], [1, 2, 4]], {}, F.bilinear)
    for shape, kernel, stride, padding, dilation in (
            ([1, 2, 4, 5], (2, 2), (1, 1), (0, 0), (1, 1)),
            ([2, 1, 5, 6], (3, 2), (2, 1), (1, 1), (1, 2)), ([1, 3, 5, 5], (2, 2), (3, 2), (0, 1), (2, 1))):
        attrs = {"kernel": list(kernel), "stride": list(stride), "padding": list(padding),
                 "dilation": list(dilation)}
        yield case("unfold", [shape], attrs, lambda a: F.unfold(a, kernel, dilation, padding, stride))
        columns = F.unfold(torch.zeros(shape), kernel, dilation, padding, stride).shape
        yield case("fold", [list(columns)], {"output": shape[2:], **attrs},
                   lambda a: F.fold(a, shape[2:], kernel, dilation, padding, stride))


def optimizers():
    def run(op, attrs, make, lr=0.05, steps=6):
        param = torch.nn.Parameter(numbers([7], 1))
        optimizer = make([param], lr)
        params = []
        for step in range(steps):
            param.grad = numbers([7], 10 + step)
            optimizer.step()
            params.append(flat(param))
        return {"op": op, "attrs": attrs, "lr": lr, "params": params}
    sgd, adam, adamw = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
    yield run("sgd", {}, lambda p, lr: sgd(p, lr))
    yield run("sgd", {"weight_decay": 0.1}, lambda p, lr: sgd(p, lr, weight_decay=0.1))
    yield run("momentum", {}, lambda p, lr: sgd(p, lr, momentum=0.9))
    yield run("momentum", {"momentum": 0.5, "weight_decay": 0.1},
              lambda p, lr: sgd(p, lr, momentum=0.5, weight_decay=0.1))
    yield run("momentum", {"nesterov": True}, lambda p, lr: sgd(p, lr, momentum=0.9, nesterov=True))
    yield run("adam", {}, lambda p, lr: adam(p, lr))
    yield run("adam", {"beta1": 0.0, "beta2": 0.5, "eps": 0.01, "weight_decay": 0.1},
              lambda p, lr: adam(p, lr, betas=(0.0, 0.5), eps=0.01, weight_decay=0.1))
    yield run("adamw", {}, lambda p, lr: adamw(p, lr))
    yield run("adamw", {"beta1": 0.5, "beta2": 0.75, "eps": 0.01, "weight_decay": 0.25},
              lambda p, lr: adamw(p, lr, betas=(0.5, 0.75), eps=0.01, weight_decay=0.25))


def main():
    parts = (convolutions, pools, resizes, norms, losses, class_losses, soft_labels, pair_losses,
             nonfinite, functions, arithmetic, logic, sources, casts, products, reductions, activations, steps, shapes,
             indices, embeddings, rotations, attention, selections, contractions)
    lines = [json.dumps(c) for part in parts for c in part()]
    trajectories = [json.dumps(c) for c in optimizers()]
    text = '{"torch": "%s",\n"cases": [\n%s],\n"optimizers": [\n%s]}\n' % (
        torch.__version__, ",\n".join(lines), ",\n".join(trajectories))
    pathlib.Path(__file__).with_suffix(".json").write_text(text)


if __name__ == "__main__":
    main()
