"""Results and gradients of layers by PyTorch, in f64.

    python tests/golden/layers.py > tests/golden/layers.json

tests/executor/layers_test.cpp records Fluid's layer of each name. The loss is sum(weights * y). All tensors come from
training.py's `uniform`: parameter k of Fluid's layer from stream k, the others from the streams below. Parameters are
in Fluid's order and form: weights of linear layers are [in, units].
"""

import json
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from training import uniform

INPUT, WEIGHTS = 100, 120
N = 2


def drawn(stream, shape):
    return uniform(stream, int(np.prod(shape))).reshape(shape)


def numbers(stream, shape):
    return torch.tensor(2 * drawn(stream, shape) - 1, requires_grad=True)


def flat(tensor):
    return [float(f"{v:.11g}") for v in tensor.detach().flatten().tolist()]


def floats(*shape):
    return {"shape": shape, "dtype": "f64"}


def indices(below, *shape):
    return {"shape": shape, "dtype": "i64", "below": below}


def mask(*shape):
    """True in three of four elements."""
    return {"shape": shape, "dtype": "bool", "below": 4}


def additive_mask(*shape):
    return {"shape": shape, "dtype": "f64", "constant": True}


def tensor_of(i, spec):
    if "below" not in spec:
        return numbers(INPUT + i, spec["shape"]).requires_grad_("constant" not in spec)
    integers = torch.tensor((spec["below"] * drawn(INPUT + i, spec["shape"])).astype(np.int64))
    return integers > 0 if spec["dtype"] == "bool" else integers


def case(name, inputs, parameters, function, after_step=lambda p: {}):
    """`function` takes the inputs and the list of parameters, which have the shapes `parameters`."""
    x = [tensor_of(i, spec) for i, spec in enumerate(inputs)]
    p = [numbers(k, shape) for k, shape in enumerate(parameters)]
    y = function(*x, p)
    (y * numbers(WEIGHTS, y.shape)).sum().backward()
    result = {"name": name, "inputs": inputs, "parameters": parameters, "y": flat(y),
              "grad_inputs": [flat(v.grad) for v in x if v.requires_grad], "grad_parameters": [flat(v.grad) for v in p]}
    with torch.no_grad():  # SGD with a learning rate of 1
        return result | {k: flat(v) for k, v in after_step([v - v.grad for v in p]).items()}


def convolutions():
    yield case("conv1d", [floats(N, 2, 5)], [[3, 2, 3], [3]], lambda x, p: F.conv1d(x, *p, stride=2, padding=1))
    yield case("conv2d", [floats(N, 4, 3, 3)], [[2, 2, 2, 3], [2]],
               lambda x, p: F.conv2d(x, *p, stride=(1, 2), padding=(1, 0), dilation=(2, 1), groups=2))
    yield case("conv2d_same", [floats(N, 1, 3, 3)], [[2, 1, 2, 4]],
               lambda x, p: torch.relu(F.conv2d(x, *p, padding="same")))
    yield case("conv3d", [floats(N, 1, 2, 3, 2)], [[2, 1, 2, 2, 1], [2]], lambda x, p: F.conv3d(x, *p, padding=(0, 1, 0)))
    yield case("conv1d_transpose", [floats(N, 2, 3)], [[2, 2, 3], [2]],
               lambda x, p: F.conv_transpose1d(x, *p, stride=2, output_padding=1))
    yield case("conv2d_transpose", [floats(N, 2, 2, 2)], [[2, 1, 3, 2], [2]],
               lambda x, p: F.conv_transpose2d(x, *p, stride=2, padding=(1, 0), groups=2))
    yield case("conv3d_transpose", [floats(N, 1, 2, 1, 2)], [[1, 2, 2, 1, 2]],
               lambda x, p: F.conv_transpose3d(x, *p, dilation=(1, 1, 2)))
    yield case("conv2d_transpose_same", [floats(N, 1, 2, 3)], [[1, 2, 3, 4], [2]],  # cropped to extent * stride
               lambda x, p: F.conv_transpose2d(x, *p, stride=(2, 1))[:, :, :-1, 1:-2])


def linear(x, w, b=None):
    return x @ w if b is None else x @ w + b


def linear_layers():
    yield case("linear", [floats(N, 2, 3)], [[3, 4], [4]], lambda x, p: linear(x, *p))
    # F.hardsigmoid's gradient rounds 1 / 6 to f32.
    activations = (F.relu, torch.sigmoid, torch.tanh, F.gelu, F.relu6, F.leaky_relu, F.elu, F.selu, F.celu, F.silu,
                   F.mish, F.softplus, F.softsign, lambda h: F.relu6(h + 3) / 6, F.hardswish, F.logsigmoid)
    yield case("activations", [floats(N, 2)], [[2, 3], [3]],
               lambda x, p: torch.cat([act(linear(x, *p)) for act in activations], 1))
    yield case("embedding", [indices(5, N, 3)], [[5, 2]], lambda i, p: F.embedding(i, *p, padding_idx=1))
    yield case("tied_embedding", [indices(4, N, 3)], [[4, 3]], lambda i, p: F.embedding(i, *p) @ p[0].T)


def norms():
    for name, shape in (("batch_norm", [N, 3, 2, 2]), ("batch_norm_rows", [N, 3])):
        net = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(3, eps=1e-3, momentum=0.3).double()
        given = lambda p: {"weight": p[0], "bias": p[1]}
        yield case(name, [floats(*shape)], [[3], [3]], lambda x, p: functional_call(net, given(p), x),
                   lambda p: {"running_mean": net.running_mean, "running_var": net.running_var,
                              "eval": functional_call(net.eval(), given(p), numbers(INPUT, shape))})
    yield case("layer_norm", [floats(N, 2, 3)], [[2, 3], [2, 3]], lambda x, p: F.layer_norm(x, (2, 3), *p, eps=1e-3))
    yield case("layer_norm_scale", [floats(N, 4)], [[4]], lambda x, p: F.layer_norm(x, (4,), *p))
    yield case("layer_norm_plain", [floats(N, 3)], [], lambda x, p: F.layer_norm(x, (3,)))
    yield case("rms_norm", [floats(N, 4)], [[4]], lambda x, p: F.rms_norm(x, (4,), *p, eps=1e-5))
    yield case("rms_norm_axis", [floats(N, 2, 3)], [[2, 3]], lambda x, p: F.rms_norm(x, (2, 3), *p, eps=0.5))
    yield case("group_norm_scale", [floats(N, 4, 3)], [[4]], lambda x, p: F.group_norm(x, 2, *p, eps=0.5))
    yield case("group_norm", [floats(N, 4, 3)], [[4], [4]], lambda x, p: F.group_norm(x, 2, *p))
    yield case("instance_norm", [floats(N, 2, 3)], [], lambda x, p: F.instance_norm(x))
    yield case("instance_norm_affine", [floats(N, 2, 3)], [[2], [2]],
               lambda x, p: F.instance_norm(x, weight=p[0], bias=p[1]))


def pools():
    x = [floats(N, 2, 2, 3)]
    yield case("global_avg_pool", x, [], lambda x, p: F.adaptive_avg_pool2d(x, 1))
    yield case("global_max_pool", x, [], lambda x, p: F.adaptive_max_pool2d(x, 1))
    yield case("global_lp_pool", x, [], lambda x, p: torch.linalg.vector_norm(x, 3, (2, 3), keepdim=True))


def attention_parameters(net, p):
    """The parameters of a torch.nn.MultiheadAttention. `p`: those of qkv and out, or of q, kv and out."""
    bias = net.in_proj_bias is not None
    weights, biases = (p[::2], p[1::2]) if bias else (p, [])
    *projections, out = [w.T for w in weights]
    given = {"out_proj.weight": out}
    if net.in_proj_weight is not None:
        given["in_proj_weight"] = torch.cat(projections)
    else:
        q, kv = projections
        given |= dict(zip(["q_proj_weight", "k_proj_weight", "v_proj_weight"], [q, *kv.chunk(2)]))
    return given | ({"in_proj_bias": torch.cat(biases[:-1]), "out_proj.bias": biases[-1]} if bias else {})


def attend(x, memory, p, heads, attn_mask=None, bias=True):
    features = memory.shape[2]
    net = nn.MultiheadAttention(x.shape[2], heads, bias=bias, kdim=features, vdim=features, batch_first=True)
    return functional_call(net, attention_parameters(net, p), (x, memory, memory),
                           {"attn_mask": attn_mask, "need_weights": False})[0]


def attend_in_groups(x, memory, p, heads, groups, attn_mask=None, causal=False):
    """Grouped queries, which torch.nn.MultiheadAttention lacks."""
    split = lambda v, n: v.unflatten(2, (n, -1)).transpose(1, 2)
    depth = x.shape[2] // heads
    if len(p) == 4:
        q, k, v = linear(x, *p[:2]).split([heads * depth, groups * depth, groups * depth], 2)
    else:
        q, (k, v) = linear(x, *p[:2]), linear(memory, *p[2:4]).chunk(2, 2)
    y = F.scaled_dot_product_attention(split(q, heads), split(k, groups), split(v, groups), attn_mask,
                                       is_causal=causal, enable_gqa=True)
    return linear(y.transpose(1, 2).flatten(2), *p[-2:])


def causal_mask(n):
    """PyTorch's bool masks of nn.MultiheadAttention are true where a key is masked out."""
    return torch.ones(n, n, dtype=torch.bool).triu(1)


SELF_ATTENTION = [[4, 12], [12], [4, 4], [4]]
CROSS_ATTENTION = [[4, 4], [4], [3, 8], [8], [4, 4], [4]]


def attention():
    x, memory = floats(N, 3, 4), floats(N, 4, 3)
    per_head = lambda m: m.expand(-1, 2, -1, -1).flatten(0, 1)
    yield case("attention", [x], SELF_ATTENTION, lambda x, p: attend(x, x, p, 2))
    yield case("attention_causal_without_bias", [x], SELF_ATTENTION[::2],
               lambda x, p: attend(x, x, p, 2, causal_mask(3), bias=False))
    yield case("attention_bool_mask", [x, mask(N, 1, 3, 3)], SELF_ATTENTION,
               lambda x, m, p: attend(x, x, p, 2, per_head(~m)))
    yield case("attention_additive_mask", [x, additive_mask(3, 3)], SELF_ATTENTION,
               lambda x, m, p: attend(x, x, p, 2, m))
    distance = (torch.arange(3)[None] - torch.arange(3)[:, None]).abs()
    biases = -torch.tensor([2.0 ** -4, 2.0 ** -8])[:, None, None] * distance  # ALiBi's slopes of two heads
    yield case("attention_alibi", [x], SELF_ATTENTION,
               lambda x, p: attend(x, x, p, 2, biases.to(x.dtype).repeat(N, 1, 1)))
    yield case("attention_key_heads", [x], [[4, 8], [8], [4, 4], [4]],
               lambda x, p: attend_in_groups(x, x, p, 4, 2, causal=True))
    yield case("cross_attention", [x, memory], CROSS_ATTENTION, lambda x, m, p: attend(x, m, p, 2))
    yield case("cross_attention_bool_mask", [x, memory, mask(N, 1, 3, 4)], CROSS_ATTENTION,
               lambda x, m, seen, p: attend(x, m, p, 2, per_head(~seen)))
    yield case("cross_attention_additive_mask", [x, memory, additive_mask(N, 2, 3, 4)], CROSS_ATTENTION[::2],
               lambda x, m, added, p: attend(x, m, p, 2, added.flatten(0, 1), bias=False))
    yield case("cross_attention_key_heads", [x, memory, mask(3, 4)], [[4, 4], [4], [3, 2], [2], [4, 4], [4]],
               lambda x, m, seen, p: attend_in_groups(x, m, p, 4, 1, seen))
    yield case("scaled_dot_product_attention", [floats(N, 2, 3, 2), floats(N, 1, 4, 2), floats(N, 1, 4, 3), mask(3, 4)],
               [], lambda q, k, v, m, p: F.scaled_dot_product_attention(q, k, v, m, scale=0.25, enable_gqa=True))

    def positional_encoding(x, p):
        """As in PyTorch's tutorial "Language Modeling with nn.Transformer"."""
        length, width = x.shape[1:]
        position = torch.arange(length).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2, dtype=x.dtype) * (-math.log(10000.0) / width))
        encoding = torch.zeros(length, width, dtype=x.dtype)
        encoding[:, 0::2] = torch.sin(position * rate)
        encoding[:, 1::2] = torch.cos(position * rate)
        return x + encoding
    yield case("positional_encoding", [floats(N, 5, 4)], [], positional_encoding)


def named(prefix, p):
    return {prefix + ".weight": p[0], prefix + ".bias": p[1]}


def feed_forward(p):
    return {"linear1.weight": p[0].T, "linear1.bias": p[1], "linear2.weight": p[2].T, "linear2.bias": p[3]}


def prefixed(prefix, given):
    return {f"{prefix}.{k}": v for k, v in given.items()}


def blocks():
    x, memory, norm, hidden = floats(N, 3, 4), floats(N, 2, 4), [[4], [4]], [[4, 5], [5], [5, 4], [4]]

    def encoder(x, p, attn_mask=None, **options):
        net = nn.TransformerEncoderLayer(4, 2, 5, dropout=0, batch_first=True, dtype=x.dtype, **options)
        attention = lambda p: prefixed("self_attn", attention_parameters(net.self_attn, p))
        if net.norm_first:
            given = named("norm1", p[:2]) | attention(p[2:6]) | named("norm2", p[6:8]) | feed_forward(p[8:])
        else:
            given = attention(p[:4]) | named("norm1", p[4:6]) | feed_forward(p[6:10]) | named("norm2", p[10:])
        return functional_call(net, given, (x, attn_mask))
    yield case("block", [x], norm + SELF_ATTENTION + norm + hidden,
               lambda x, p: encoder(x, p, causal_mask(3), activation="gelu", norm_first=True))
    yield case("block_post_norm", [x, additive_mask(3, 3)], SELF_ATTENTION + norm + hidden + norm,
               lambda x, m, p: encoder(x, p, m, activation="relu", layer_norm_eps=1e-3))

    def grouped(x, p):
        h = F.layer_norm(x, (4,), *p[:2])
        h = x + attend_in_groups(h, h, p[2:6], 4, 2)
        return h + linear(F.gelu(linear(F.layer_norm(h, (4,), *p[6:8]), *p[8:10])), *p[10:])
    yield case("block_key_heads", [x], norm + [[4, 8], [8], [4, 4], [4]] + norm + hidden, grouped)

    def without_bias(x, p):
        h = F.layer_norm(x, (4,), p[0])
        h = x + attend(h, h, p[1:3], 2, bias=False)
        return h + linear(F.gelu(linear(F.layer_norm(h, (4,), p[3]), p[4])), p[5])
    yield case("block_without_bias", [x], [[4], [4, 12], [4, 4], [4], [4, 5], [5, 4]], without_bias)

    def decoder(x, memory, p):
        net = nn.TransformerDecoderLayer(4, 2, 5, dropout=0, batch_first=True, dtype=x.dtype)
        given = (prefixed("self_attn", attention_parameters(net.self_attn, p[:4])) | named("norm1", p[4:6])
                 | prefixed("multihead_attn", attention_parameters(net.multihead_attn, p[6:12]))
                 | named("norm2", p[12:14]) | feed_forward(p[14:18]) | named("norm3", p[18:]))
        return functional_call(net, given, (x, memory, causal_mask(3)))
    yield case("decoder", [x, memory], SELF_ATTENTION + norm + [[4, 4], [4], [4, 8], [8], [4, 4], [4]] + norm + hidden
               + norm, decoder)


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    parts = (convolutions, linear_layers, norms, pools, attention, blocks)
    cases = ",\n".join(json.dumps(c) for part in parts for c in part())
    print('{"made_by": "tests/golden/layers.py", "torch": "%s", "cases": [\n%s]}' % (torch.__version__, cases))


main()
