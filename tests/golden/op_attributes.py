"""Writes op_attributes.json: results and gradients of ops in f64, from PyTorch, for the attributes that ops.py leaves
at their defaults. The cases have the form of those in ops.json.

    python tests/golden/op_attributes.py
"""

import itertools
import json
import math
import pathlib

import torch
import torch.nn.functional as F

from ops import case, flat, focal, numbers, pair_losses, without_gradient


def windows_of(x, kernel, dilation, stride=1):
    """The taps of all whole windows of x [N, C, ...], along a new first dimension."""
    reach = dilation * (kernel - 1)
    taps = itertools.product(range(kernel), repeat=x.dim() - 2)
    return torch.stack([
        x[(..., *(slice(dilation * t, n - reach + dilation * t, stride) for t, n in zip(tap, x.shape[2:])))]
        for tap in taps])


def window_attributes():
    """Padding that differs between the ends, dilation and divisors."""
    functions = {1: (F.conv1d, F.conv_transpose1d, F.max_pool1d), 2: (F.conv2d, F.conv_transpose2d, F.max_pool2d),
                 3: (F.conv3d, F.conv_transpose3d, F.max_pool3d)}
    for dims, (conv, transposed, pool) in functions.items():
        space, taps = [4, 3, 2][:dims], [2] * dims
        before, after = [1, 0, 2][:dims], [2, 1, 0][:dims]
        around = [n for ends in zip(before[::-1], after[::-1]) for n in ends]
        attrs = {"padding": before + after, "groups": 2, "stride": [2]}
        yield case(f"conv{dims}d", [[1, 2, *space], [2, 1, *taps]], attrs,
                   lambda a, w: conv(F.pad(a, around), w, stride=2, groups=2))
        inside = (..., *(slice(b, -e or None) for b, e in zip(before, after)))
        yield case(f"conv{dims}d_transpose", [[1, 2, *space], [2, 1, *taps]], {**attrs, "dilation": [2]},
                   lambda a, w: transposed(a, w, stride=2, groups=2, dilation=2)[inside])
        attrs = {"kernel": [2], "stride": [2], "padding": [1] * dims + [0] * dims}
        yield case(f"max_pool{dims}d", [[1, 1, *space]], attrs,
                   lambda a: pool(F.pad(a, [1, 0] * dims, value=-math.inf), 2, 2))
        space = [5, 4, 3][:dims]
        attrs = {"kernel": [2], "stride": [1], "dilation": [2]}
        yield case(f"max_pool{dims}d", [[1, 1, *space]], attrs, lambda a: pool(a, 2, 1, 0, 2))
        yield case(f"avg_pool{dims}d", [[1, 1, *space]], attrs, lambda a: windows_of(a, 2, 2).mean(0))
        yield case(f"avg_pool{dims}d", [[1, 1, *space]], {"kernel": [2], "divisor_override": 3},
                   lambda a: windows_of(a, 2, 1, 2).sum(0) / 3)
        x = (numbers([1, 1, *space], 1) + 0.75).requires_grad_()
        yield case("lp_pool", [list(x.shape)], {**attrs, "p": 3.0},
                   lambda a: windows_of(a ** 3, 2, 2).sum(0) ** (1 / 3), inputs=[x])
    attrs = {"kernel": [2, 2], "padding": [1, 0, 0, 1]}
    yield case("unfold", [[1, 1, 2, 3]], attrs, lambda a: F.unfold(F.pad(a, (0, 1, 1, 0)), 2))
    yield case("fold", [[1, 4, 6]], {"output": [2, 3], **attrs}, lambda a: F.fold(a, (3, 4), 2)[:, :, 1:, :3])


def norm_attributes():
    yield case("lrn", [[2, 4, 2]], {"size": 3, "alpha": 0.3, "beta": 1.5, "k": 2.0},
               lambda a: F.local_response_norm(a, 3, 0.3, 1.5, 2.0))
    yield case("group_norm", [[2, 4, 2], [4]], {"groups": 2, "eps": 0.5}, lambda a, w: F.group_norm(a, 2, w, None, 0.5))
    for op, function in (("layer_norm", F.layer_norm), ("rms_norm", F.rms_norm)):
        yield case(op, [[2, 2, 3], [2, 3]], {"axis": -2, "eps": 0.5}, lambda a, w: function(a, (2, 3), w, eps=0.5))
    x = torch.linspace(-4, 4, 9, dtype=torch.float64).requires_grad_()
    yield case("hard_sigmoid", [[9]], {"alpha": 0.2, "beta": 0.6}, lambda a: torch.clamp(0.2 * a + 0.6, 0, 1),
               inputs=[x])


def shape_attributes():
    def stuffed(a, low, interior, high, value):
        y = torch.full([b + (n - 1) * (i + 1) + 1 + e for n, b, i, e in zip(a.shape, low, interior, high)], value,
                       dtype=a.dtype)
        at = [b + (i + 1) * torch.arange(n) for n, b, i in zip(a.shape, low, interior)]
        return y.index_put(torch.meshgrid(*at, indexing="ij"), a)
    yield case("pad", [[2, 3]], {"low": [0, 1], "interior": [1, 2], "high": [1, 0], "value": 0.5},
               lambda a: stuffed(a, [0, 1], [1, 2], [1, 0], 0.5))
    yield case("slice", [[4, 5]], {"starts": [-1, 4], "stops": [-5, 0], "steps": [-1, -2], "axes": [0, -1]},
               lambda a: a[[3, 2, 1, 0]][:, [4, 2]])
    yield case("slice", [[2, 4]], {"starts": [-3], "stops": [-1], "axes": [1]}, lambda a: a[:, -3:-1])
    yield case("squeeze", [[1, 3, 1]], {}, torch.squeeze)
    yield case("split", [[2, 5]], {"sizes": [2, 3], "axis": -1}, lambda a: torch.split(a, [2, 3], -1)[0])
    yield case("concat", [[2, 3], [1, 3]], {"axis": -2}, lambda a, b: torch.cat((a, b), -2))


def index_attributes():
    """Negative axes, axes other than the usual one, batch dimensions, and all reductions."""
    ties = numbers([4, 3], 1, 3)
    for descending in (False, True):
        attrs = {"axis": 0, "descending": descending}
        yield {"op": "argsort", "shapes": [[4, 3]], "levels": 3, "attrs": attrs,
               "y": flat(torch.argsort(ties, dim=0, descending=descending, stable=True).double())}
    yield case("topk", [[2, 4]], {"k": 3, "sorted": False},  # in the order of x
               lambda a: a.gather(1, torch.topk(a, 3).indices.sort(1).values))
    zeros = [[0.5, 2.0, -3.0], [0.0, 2.0, -3.0], [1.5, 0.0, 0.0]]

    def cumulative(a, axis, function, first, exclusive, reverse):
        a = a.flip(axis) if reverse else a
        y = function(a, axis)
        if exclusive:
            shifted = y.narrow(axis, 0, y.shape[axis] - 1)
            y = torch.cat((torch.full_like(y.narrow(axis, 0, 1), first), shifted), axis)
        return y.flip(axis) if reverse else y
    for op, function, first in (("cumsum", torch.cumsum, 0), ("cumprod", torch.cumprod, 1)):
        for reverse in (False, True):
            x = torch.tensor(zeros, dtype=torch.float64).requires_grad_()
            yield case(op, [[3, 3]], {"axis": -2, "exclusive": True, "reverse": reverse},
                       lambda a: cumulative(a, -2, function, first, True, reverse), inputs=[x])
    reductions = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    for axis, index in ((0, [[1, 0], [1, 2]]), (-2, [[0, 0], [2, 0]])):
        for reduce, torchs in reductions.items():
            yield case("scatter", [[3, 2], [2, 2]], {"axis": axis, "reduce": reduce},
                       lambda a, u, i: a.scatter_reduce(axis, i, u, torchs), label=index, label_at=1)
        yield case("take_along_axis", [[3, 2]], {"axis": axis}, lambda a, i: torch.gather(a, axis, i), label=index)
    yield case("scatter", [[3, 2], [2, 2]], {"axis": -2}, lambda a, u, i: a.scatter(0, i, u), label=[[1, 0], [0, 2]],
               label_at=1)
    yield case("index_add", [[2, 3], [2, 4]], {"axis": -1, "alpha": 0.5},
               lambda a, u, i: torch.index_add(a, -1, i, u, alpha=0.5), label=[2, 0, 0, 1], label_at=1)
    yield case("gather_nd", [[2, 3, 2]], {"batch_dims": 1},
               lambda a, i: a[torch.arange(2)[:, None], i[..., 0], i[..., 1]], label=[[[2, 1]], [[0, 1]]])
    yield case("gather_nd", [[2, 2, 3]], {"batch_dims": 2},
               lambda a, i: a[torch.arange(2)[:, None], torch.arange(2), i[..., 0]], label=[[[2], [0]], [[1], [1]]])
    yield case("scatter_nd", [[3, 2], [2, 2]], {"reduce": "none"}, lambda a, u, i: a.index_put((i[:, 0],), u),
               label=[[2], [0]], label_at=1)
    for reduce, torchs in reductions.items():
        yield case("scatter_nd", [[3, 2], [3]], {"reduce": reduce},
                   lambda a, u, i: a.flatten().scatter_reduce(0, 2 * i[:, 0] + i[:, 1], u, torchs).view(3, 2),
                   label=[[0, 1], [2, 0], [0, 1]], label_at=1)
    yield case("scatter_nd", [[2, 3, 2], [2, 2, 2]], {"reduce": "add", "batch_dims": 1},
               lambda a, u, i: a.scatter_add(1, i.expand(2, 2, 2), u), label=[[[2], [1]], [[0], [0]]], label_at=1)
    yield case("segment_sum", [[2, 2, 3]], {"segments": 3},
               lambda a, i: torch.zeros(3, 3, dtype=a.dtype).index_add(0, i.flatten(), a.flatten(0, 1)),
               label=[[0, 2], [2, 0]])


def reduction_attributes():
    """Several axes and kept dimensions."""
    norm = torch.linalg.vector_norm
    functions = (("sum", torch.sum), ("mean", torch.mean), ("logsumexp", torch.logsumexp), ("max", torch.amax),
                 ("min", torch.amin), ("norm_l1", lambda a, d, keepdim: norm(a, 1, d, keepdim)),
                 ("norm_l2", lambda a, d, keepdim: norm(a, 2, d, keepdim)), ("var", torch.var), ("std", torch.std))
    for op, function in functions:
        yield case(op, [[2, 3, 2]], {"axes": [-1, 0], "keep_dims": True},
                   lambda a: function(a, (-1, 0), keepdim=True))
    for op, function in (("max", torch.amax), ("min", torch.amin)):
        yield case(op, [[2, 2, 3]], {"axes": [0, 2]}, lambda a: function(a, (0, 2)), levels=3)  # ties
    yield case("prod", [[2, 3, 2]], {"axes": [0, 2], "keep_dims": True}, lambda a: a.prod(0, True).prod(2, True))
    for op, function in (("argmin", torch.argmin), ("argmax", torch.argmax)):
        x = numbers([2, 3], 1)
        yield without_gradient(op, {"axis": -2, "keep_dims": True}, function(x, -2, True), x)
    x = numbers([2, 3, 2], 1)
    for axes, keep in (([0, 2], True), ([], True), ([], False)):
        rows = x.movedim(1, 0).flatten(1) if axes else x.reshape(1, -1)
        for result, y in enumerate(torch.max(rows, 1)):
            y = y.reshape(([1, 3, 1] if axes else [1, 1, 1]) if keep else [])
            yield without_gradient("max_index", {"axes": axes, "keep_dims": keep}, y, x, result=result)
    truth = torch.tensor([[[True, False], [True, True]], [[False, False], [True, True]]])
    for op, function in (("any", torch.any), ("all", torch.all)):
        for axes, keep in (([0, -1], True), ([], False)):
            y = function(truth, tuple(axes) or (0, 1, 2), keep)
            yield without_gradient(op, {"axes": axes, "keep_dims": keep}, y, truth, dtype="bool")


def pair_loss_attributes():
    yield from pair_losses(("sum",))
    bits = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5, 0.25], dtype=torch.float64).requires_grad_()
    yield case("focal_loss", [[6], [6]], {"alpha": 0.7, "gamma": 0.0}, lambda a, b: focal(a, b, "none", 0.7, 0.0),
               inputs=[numbers([6], 1).requires_grad_(), bits])
    yield case("triplet_margin_loss", [[2, 3]] * 3, {"eps": 0.1, "reduction": "none"},
               lambda a, b, c: F.triplet_margin_loss(a, b, c, eps=0.1, reduction="none"))


def class_loss_attributes():
    """Label smoothing with ignored labels and class weights, over images."""
    def smoothed(x, w, label, smoothing, reduction, ignore):
        """PyTorch has no gradient of class weights, so the loss is written out and compared."""
        log_p, counts = F.log_softmax(x, 1).movedim(1, -1), (label != ignore).double()
        own = label.where(label != ignore, 0)
        picked = w[own] * log_p.gather(-1, own[..., None])[..., 0]
        y = -counts * ((1 - smoothing) * picked + smoothing / x.shape[1] * (w * log_p).sum(-1))
        y = {"none": y, "sum": y.sum(), "mean": y.sum() / (w[own] * counts).sum()}[reduction]
        torch.testing.assert_close(y.detach(), F.cross_entropy(
            x.detach(), label, w.detach(), label_smoothing=smoothing, reduction=reduction, ignore_index=ignore))
        return y
    label = [[[0, 2]], [[1, 2]]]
    for reduction, smoothing in (("none", 0.3), ("mean", 0.3), ("sum", 0.3), ("mean", 1.0)):
        attrs = {"axis": 1, "reduction": reduction, "label_smoothing": smoothing, "ignore_index": [2]}
        yield case("softmax_cross_entropy", [[2, 3, 1, 2], [3]], attrs,
                   lambda a, w, l: smoothed(a, w, l, smoothing, reduction, 2), label=label, label_at=1,
                   inputs=[numbers([2, 3, 1, 2], 1).requires_grad_(), (numbers([3], 2) + 1).requires_grad_()])
        yield case("softmax_cross_entropy", [[2, 3, 1, 2]], attrs,
                   lambda a, l: F.cross_entropy(a, l, label_smoothing=smoothing, reduction=reduction, ignore_index=2),
                   label=label)
    yield case("nll_loss", [[3, 2]], {"axis": 0}, lambda a, l: F.nll_loss(a.T, l, reduction="none"), label=[2, 0])


def attention_attributes():
    def attend(q, k, v, mask, scale):
        return F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=True)
    triangle = torch.ones(3, 4, dtype=torch.bool).tril()
    result = case("scaled_dot_product_attention", [[1, 2, 3, 2], [1, 2, 4, 2], [1, 2, 4, 2], [2, 3, 4]],
                  {"causal": True, "scale": -0.5},
                  lambda q, k, v, m: attend(q, k, v, torch.where(triangle, m, -math.inf), -0.5))
    yield {**result, "grads": result["grads"][:3] + [None]}
    for queries, keys in ((66, 3), (2, 130)):  # more than one tile
        seen = torch.ones(queries, keys, dtype=torch.bool).tril()
        yield case("scaled_dot_product_attention", [[1, 1, queries, 1], [1, 1, keys, 1], [1, 1, keys, 1]],
                   {"causal": queries > keys}, lambda q, k, v: attend(q, k, v, seen if queries > keys else None, None))


def main():
    parts = (window_attributes, norm_attributes, shape_attributes, index_attributes, reduction_attributes,
             pair_loss_attributes, class_loss_attributes, attention_attributes)
    lines = [json.dumps(c) for part in parts for c in part()]
    text = '{"torch": "%s",\n"cases": [\n%s]}\n' % (torch.__version__, ",\n".join(lines))
    pathlib.Path(__file__).with_suffix(".json").write_text(text)


if __name__ == "__main__":
    main()
