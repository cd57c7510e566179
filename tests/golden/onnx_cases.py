"""Cases that ONNX's own vectors lack, by ONNX's reference evaluator and onnxruntime.

    python tests/golden/onnx_cases.py > tests/golden/onnx_cases.jsonl

Each line has the format of onnx_node_tests.jsonl, which holds ONNX's own vectors, but those with
graphs as attributes: some of these are here.
"""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

DTYPES = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool",
          "uint8": "u8", "int8": "i8"}
rng = np.random.default_rng(21)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype=dtype)


def number(x):
    if isinstance(x, float) and not np.isfinite(x):
        return "nan" if x != x else "inf" if x > 0 else "-inf"
    return int(x) if isinstance(x, bool) else x


def tensor(a):
    a = np.asarray(a)
    # The shortest text that gives the same f32.
    shortest = a.dtype == np.float32
    data = [number(float(str(x)) if shortest else x.item()) for x in a.ravel()]
    return {"dtype": DTYPES[str(a.dtype)], "shape": list(a.shape), "data": data}


def attribute(value):
    if isinstance(value, onnx.GraphProto):
        return {
            "inputs": [i.name for i in value.input],
            "outputs": [o.name for o in value.output],
            "initializers": {t.name: attribute(t) for t in value.initializer},
            "nodes": [node_json(n) for n in value.node],
        }
    if isinstance(value, onnx.TensorProto):
        return tensor(numpy_helper.to_array(value))
    return value.decode() if isinstance(value, bytes) else value


def node_json(node):
    attrs = {a.name: attribute(helper.get_attribute_value(a)) for a in node.attribute}
    return {"op": node.op_type, "inputs": list(node.input), "outputs": list(node.output),
            "attrs": attrs}


def model_of(op, inputs, outputs, opset, attrs, outer):
    """A model of one node, and its inputs by name. An input that is None is left out. `outer`: more
    inputs of the model by name, which graphs of the node read."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    given = {n: x for n, x in zip(names, inputs) if n} | outer
    node = helper.make_node(op, names, outputs, **attrs)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in given.items()
    ]
    results = [helper.make_empty_tensor_value_info(n) for n in outputs if n]
    graph = helper.make_graph([node], "case", infos, results)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets), given


def evaluate(op, inputs, outputs, opset, attrs):
    """Results of the node by the reference evaluator."""
    model, given = model_of(op, inputs, outputs, opset, attrs, {})
    return ReferenceEvaluator(model).run(None, given)


def session_of(model):
    model.ir_version = 8
    return onnxruntime.InferenceSession(model.SerializeToString(),
                                        providers=["CPUExecutionProvider"])


def run(op, inputs, outputs, opset, attrs, outer={}):
    """Results of the node by onnxruntime."""
    model, given = model_of(op, inputs, outputs, opset, attrs, outer)
    return session_of(model).run(None, given)


def write_graph(name, source, opset, nodes, initializers, inputs, outputs, rtol=1e-5, atol=1e-6):
    """Tensors are given by name."""
    print(
        json.dumps(
            {
                "name": name,
                "source": source,
                "opset": opset,
                "rtol": rtol,
                "atol": atol,
                "nodes": nodes,
                "initializers": {n: tensor(x) for n, x in initializers.items()},
                "inputs": [{**tensor(x), "name": n} for n, x in inputs.items()],
                "outputs": [{**tensor(y), "name": n} for n, y in outputs.items()],
            }
        )
    )


def write(name, op, inputs, results, outputs, opset, attrs, known=(),
          source="onnx.reference " + onnx.__version__, outer={}):
    """Input numbers in `known` are constants of the model."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    attrs = {n: attribute(value) for n, value in attrs.items()}
    given = {n: x for i, (n, x) in enumerate(zip(names, inputs)) if n and i not in known}
    write_graph(name, source, {"ai.onnx": opset},
                [{"op": op, "inputs": names, "outputs": outputs, "attrs": attrs}],
                {names[i]: inputs[i] for i in known}, given | outer,
                dict(zip([n for n in outputs if n], results)))


def case(name, op, *inputs, outputs=("y",), opset=18, known=(), **attrs):
    results = evaluate(op, inputs, list(outputs), opset, attrs)
    write(name, op, inputs, results, list(outputs), opset, attrs, known)


def indexing():
    x = floats(3, 4, 2)
    case("gather_negative", "Gather", x, ints(-1, 0, -4), axis=1)
    case("gather_negative_i32", "Gather", x, ints(-3, 2, dtype=np.int32), axis=-3)
    case("gather_known_index", "Gather", x, ints(-1, 2), axis=0, known=(1,))
    case("gather_scalar_index", "Gather", x, np.array(-2), axis=2)
    index = np.array([[[-1, 0], [2, -4]]] * 3)
    case("gather_elements_negative", "GatherElements", x, index, axis=1)
    updates = floats(3, 2, 2)
    case("scatter_elements_negative", "ScatterElements", x, index, updates, axis=-2)
    for reduction in ["add", "mul", "max", "min"]:
        case(f"scatter_elements_{reduction}", "ScatterElements", x, index, updates, axis=1,
             reduction=reduction)
    pairs = np.array([[-1, -2], [0, 3], [-3, -4]])
    case("gather_nd_negative", "GatherND", x, pairs)
    case("gather_nd_negative_i64_rows", "GatherND", x, np.array([[-1], [1]]))
    case("gather_nd_batch_negative", "GatherND", x, np.array([[-1], [0], [-4]]), batch_dims=1)
    case("scatter_nd_negative", "ScatterND", x, pairs, floats(3, 2))
    case("scatter_nd_negative_add", "ScatterND", x, pairs, floats(3, 2), reduction="add")
    case("scatter_nd_negative_max", "ScatterND", x, np.array([[-1], [0]]), floats(2, 4, 2),
         reduction="max")
    labels = ints(-1, 0, -4, 3, dtype=np.int32)
    lengths = ints(2, 4, 1)
    case("reverse_sequence", "ReverseSequence", floats(4, 3, 2), lengths)
    case("reverse_sequence_batch_first", "ReverseSequence", floats(3, 4), lengths, batch_axis=0,
         time_axis=1)
    case("tensor_scatter", "TensorScatter", floats(3, 4, 5), floats(3, 2, 5), ints(1, 2, 0),
         opset=24)
    case("tensor_scatter_circular", "TensorScatter", floats(2, 1, 4, 5), floats(2, 1, 2, 5),
         ints(1, 3), mode="circular", opset=24)
    case("one_hot_negative_i32", "OneHot", labels, np.array(4), floats(2), axis=0)


def shapes():
    x = floats(2, 3, 4)
    case("pad_wrap", "Pad", x, ints(0, 1, 3, 0, 2, 1), mode="wrap", opset=19)
    cropped = np.pad(x[:, 1:, :-2], ((0, 0), (0, 0), (1, 0)))  # the evaluator pads by 0 or more
    pads = ints(0, -1, 1, 0, 0, -2)
    write("pad_negative", "Pad", (x, pads), [cropped], ["y"], 18, {})
    case("slice_backwards", "Slice", x, ints(-1, 3), ints(-5, 0), ints(1, 2), ints(-1, -2))
    case("reshape_allowzero", "Reshape", floats(0, 3), ints(3, 0), allowzero=1)
    case("split_uneven", "Split", floats(7, 2), outputs=("a", "b", "c"), num_outputs=3)
    case("flatten_negative", "Flatten", x, axis=-1)
    case("center_crop_pad", "CenterCropPad", floats(7, 3, 4), ints(4, 6), axes=[0, -2])
    case("depth_to_space_crd", "DepthToSpace", floats(2, 8, 2, 3), blocksize=2, mode="CRD")
    case("expand_ones", "Expand", floats(3, 1), ints(2, 1, 4))
    case("trilu_negative", "Trilu", x, np.array(-2), upper=1)


def arithmetic():
    x = floats(2, 3, 4)
    case("div_i64", "Div", ints(-7, 7, -7, 7), ints(2, 2, -2, -2))
    case("mod_i64", "Mod", ints(-7, 7, -7, 7), ints(3, 3, -3, -3))
    case("fmod_i32", "Mod", ints(-7, 7, -7, 7, dtype=np.int32), ints(3, 3, -3, -3, dtype=np.int32),
         fmod=1)
    case("pow_i32_f32", "Pow", ints(2, 3, -2, dtype=np.int32), np.float32([2, 3, 3]))
    case("clip_bounds", "Clip", x, np.float32(0.5), np.float32(-0.5))
    case("clip_known_bounds", "Clip", x, np.float32(-0.5), np.float32(0.25), known=(1, 2))
    case("clip_known_lower", "Clip", x, np.float32(0.5), np.float32(-0.5), known=(1,))
    case("clip_known_upper", "Clip", x, np.float32(0.5), np.float32(-0.5), known=(2,))
    case("clip_lower_only", "Clip", x, np.float32(-0.25))
    for op in ["Softmax", "LogSoftmax"]:  # before 13, over all dimensions from the axis on
        rows = evaluate(op, (x.reshape(2, 12),), ["y"], 13, {"axis": 1})[0]
        write(f"{op}_opset_11", op, (x,), [rows.reshape(x.shape)], ["y"], 11, {"axis": 1})
    case("hardmax_ties", "Hardmax", np.float32([[1, 3, 3], [2, 2, 1]]), axis=0)
    for op in ["ReduceL1", "ReduceSumSquare", "ReduceMax"]:
        case(f"{op}_i64", op, ints(3, -4, 5), ints(0))
    case("arg_max_last", "ArgMax", np.float32([[1, 3, 3], [2, 2, 1]]), axis=1, select_last_index=1)
    case("matmul_row", "MatMul", floats(3), floats(2, 3, 4))
    case("matmul_dot", "MatMul", floats(3), floats(3))
    case("gemm_scalar", "Gemm", floats(2, 3), floats(3, 4), np.float32(2), beta=0.5)
    case("prelu_slopes", "PRelu", x, floats(3, 1))
    case("swiglu", "SwiGLU", x, floats(2, 3, 4), alpha=0.5, opset=28)
    large = np.float32([1.9e19, 1e20, 1e30, 3.4e38, np.inf])
    case("asinh_large", "Asinh", np.concatenate([-large, np.float32([1e-4, 0.999, 1.001, 5]), large]))
    case("acosh_large", "Acosh", np.concatenate([-large[:3], np.float32([0.5, 1, 1.001, 5]), large]))
    case("max_four", "Max", floats(3, 1), floats(1, 4), floats(4), floats(1))


def windows():
    for size in [6, 8, 9]:
        case_by_runtime(f"conv_transpose_output_shape_{size}", "ConvTranspose",
                        np.float32([[[1, 10, 100]]]), np.float32([[[1, 2, 3, 4]]]), outputs=["y"],
                        opset=11, strides=[2], output_shape=[size], output_padding=[1])
    x = floats(4, 4, 2, 3)  # the evaluator's LRN takes the batch size for the number of channels
    case("lrn_even", "LRN", x, size=4, alpha=0.5, beta=0.75, bias=2.0)
    case("col_2_im", "Col2Im", floats(2, 8, 6), ints(4, 5), ints(2, 2), strides=[2, 2],
         pads=[0, 1, 1, 1])
    case("batch_norm_training", "BatchNormalization", x, *[floats(4) for _ in range(3)],
         floats(4) ** 2, outputs=("y", "m", "v"), training_mode=1, momentum=0.8, opset=15)
    case("resize_nearest_1d", "Resize", floats(2, 3), None, np.float32([1, 2.5]), mode="nearest",
         nearest_mode="ceil", coordinate_transformation_mode="asymmetric")
    case("resize_cubic_1d", "Resize", floats(1, 1, 7), None, np.float32([1, 1, 0.6]), mode="cubic",
         antialias=1, exclude_outside=1)
    case("resize_linear_3d", "Resize", floats(1, 1, 2, 3, 2), None, None, ints(1, 1, 3, 2, 4),
         mode="linear")


def along_sequences(op, x, *rest, reverse=False, **attrs):
    """Y and the final states of one direction. The evaluator steps forwards only."""
    steps = np.flip(x, 0).copy() if reverse else x
    outputs = ["Y", "Y_h"] + (["Y_c"] if op == "LSTM" else [])
    results = evaluate(op, (steps, *rest), outputs, 14, attrs)
    if reverse:
        results[0] = np.flip(results[0], 0)
    return results


def with_lengths(op, x, w, r, b, lengths, h, c, p, reverse, **attrs):
    """Each sequence alone, cut to its length; Y is 0 beyond it."""
    y, states = [], []
    for n, length in enumerate(lengths):
        state = [h[:, n : n + 1]] + ([c[:, n : n + 1], p] if op == "LSTM" else [])
        part = along_sequences(op, x[:length, n : n + 1], w, r, b, None, *state, reverse=reverse,
                               **attrs)
        y.append(np.pad(part[0], ((0, len(x) - length), (0, 0), (0, 0), (0, 0))))
        states.append(part[1:])
    return [np.concatenate(y, 2)] + [np.concatenate(s, 1) for s in zip(*states)]


def recurrent():
    steps, batch, features, units = 4, 3, 2, 3
    lengths = ints(2, 4, 1, dtype=np.int32)
    for op, gates in [("RNN", 1), ("GRU", 3), ("LSTM", 4)]:
        x = floats(steps, batch, features)
        w, r = floats(1, gates * units, features), floats(1, gates * units, units)
        b, h, c, p = (floats(1, 2 * gates * units), floats(1, batch, units),
                      floats(1, batch, units), floats(1, 3 * units))
        lstm = op == "LSTM"
        outputs = ["Y", "Y_h"] + (["Y_c"] if lstm else [])
        more = (c, p) if lstm else ()
        for before in [0, 1] if op == "GRU" else [None]:
            attrs = {"hidden_size": units}
            if before is not None:
                attrs["linear_before_reset"] = before
            suffix = "" if before is None else f"_{before}"
            results = along_sequences(op, x, w, r, b, None, h, *more, **attrs)
            write(f"{op}_states{suffix}", op, (x, w, r, b, None, h, *more), results, outputs, 14,
                  attrs)
            for direction in ["forward", "reverse"]:
                results = with_lengths(op, x, w, r, b, lengths, h, c, p, direction == "reverse",
                                       **attrs)
                write(f"{op}_lengths_{direction}{suffix}", op, (x, w, r, b, lengths, h, *more),
                      results, outputs, 14, {**attrs, "direction": direction})


def quantization():
    def case_21(*arguments, **attrs):
        case(*arguments, opset=21, **attrs)

    x = np.array([[0.0, 2.5, -3.5, 1000.0], [-254.0, -1000.0, 0.25, 0.75]], np.float32)
    signed, unsigned = np.array(-3, np.int8), np.array(128, np.uint8)
    case_21("quantize", "QuantizeLinear", x, np.float32(2.0), unsigned)
    case_21("quantize_without_zero_point", "QuantizeLinear", x, np.float32(0.5))
    case_21("quantize_signed", "QuantizeLinear", x, np.float32(0.5), signed)
    case_21("quantize_output_dtype", "QuantizeLinear", x, np.float32(0.5), output_dtype=3)
    image = 40 * floats(2, 3, 2, 2)
    scales = np.array([0.25, 0.5, 1.5], np.float32)
    points = ints(0, 84, 255, dtype=np.uint8)
    case_21("quantize_axis", "QuantizeLinear", image, scales, points)
    case_21("quantize_negative_axis", "QuantizeLinear", image.transpose(0, 2, 3, 1).copy(), scales,
            ints(-128, 1, 127, dtype=np.int8), axis=-1)
    q = np.array([[0, 3, 128, 255], [1, 7, 130, 200]], np.uint8)
    case_21("dequantize", "DequantizeLinear", q, np.float32(2.0), unsigned)
    case_21("dequantize_without_zero_point", "DequantizeLinear", q, np.float32(0.3))
    case_21("dequantize_signed", "DequantizeLinear", ints(-128, -3, 0, 127, dtype=np.int8),
            np.float32(0.1), signed)
    case_21("dequantize_axis", "DequantizeLinear",
            rng.integers(0, 256, (2, 3, 2, 2)).astype(np.uint8), scales, points)
    case_21("dequantize_i32", "DequantizeLinear", ints(-70000, 0, 123456, dtype=np.int32),
            np.float32(0.001))
    for name, values in [("mixed", floats(3, 4)), ("positive", abs(floats(7)) + 1),
                         ("negative", -abs(floats(7)) - 1)]:
        case(f"dynamic_quantize_{name}", "DynamicQuantizeLinear", values,
             outputs=("y", "y_scale", "y_zero_point"))


def activations():
    """Activations that take numbers of activation_alpha and activation_beta, beside others that
    take none. The evaluator gives the i-th number to the i-th activation."""
    chosen = {"leaky": (["Sigmoid", "LeakyRelu", "Tanh"], [0.3], []),
              "mixed": (["HardSigmoid", "Softsign", "ScaledTanh"], [0.3, 0.5], [0.4, 0.7]),
              "affine": (["Softplus", "Affine", "Elu"], [0.5, 0.8], [0.1])}
    steps, batch, features, units = 3, 2, 2, 2
    for op, gates, count in [("RNN", 1, 1), ("GRU", 3, 2), ("LSTM", 4, 3)]:
        outputs = ["Y", "Y_h"] + (["Y_c"] if op == "LSTM" else [])
        for directions in [1, 2]:
            inputs = (floats(steps, batch, features), floats(directions, gates * units, features),
                      floats(directions, gates * units, units),
                      floats(directions, 2 * gates * units))
            options = {}
            for name, (functions, alphas, betas) in chosen.items():
                taken = [f for f in functions if op != "RNN" or f not in ("Sigmoid", "Softplus")]
                taken = taken[:count]
                has_alpha = [f in ("LeakyRelu", "HardSigmoid", "ScaledTanh", "Affine", "Elu")
                             for f in taken]
                has_beta = [f in ("HardSigmoid", "ScaledTanh", "Affine") for f in taken]
                options[name] = {"activations": taken * directions,
                                 "activation_alpha": alphas[:sum(has_alpha)] * directions}
                if any(has_beta):
                    options[name]["activation_beta"] = betas[:sum(has_beta)] * directions
            options["clip"] = {"clip": 0.5}
            if op == "LSTM":
                options["input_forget"] = {"input_forget": 1}
            for name, more in options.items():
                attrs = {"hidden_size": units, **more,
                         "direction": "bidirectional" if directions == 2 else "forward"}
                write(f"{op}_{name}_{directions}", op, inputs,
                      run(op, inputs, outputs, 14, attrs), outputs, 14, attrs,
                      source="onnxruntime " + onnxruntime.__version__)


def halves():
    """0.5 / scale is 25.5 in f32, and less in f64."""
    case("dynamic_quantize_half", "DynamicQuantizeLinear",
         np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32),
         outputs=("y", "y_scale", "y_zero_point"))


def graph(text):
    return onnx.parser.parse_graph(text)


def onnx_vectors():
    """ONNX's own vectors of nodes that have graphs."""
    names = ["test_scan9_sum", "test_scan9_multi_state", "test_scan9_scalar", "test_if"]
    for vector in collect_testcases():
        if vector.name not in names:
            continue
        inputs, outputs = vector.data_sets[0]
        model = vector.model.graph
        write_graph(vector.name, f"onnx-{onnx.__version__}/node",
                    {"ai.onnx": vector.model.opset_import[0].version},
                    [node_json(n) for n in model.node], {},
                    {i.name: x for i, x in zip(model.input, inputs)},
                    {o.name: y for o, y in zip(model.output, outputs)}, vector.rtol, vector.atol)


def case_by_runtime(name, op, *inputs, outputs, opset=16, known=(), outer={}, **attrs):
    outputs = list(outputs)
    write(name, op, inputs, run(op, inputs, outputs, opset, attrs, outer), outputs, opset, attrs,
          known, "onnxruntime " + onnxruntime.__version__, outer)


def scans():
    def scan(name, states, sequences, outputs, body, **attrs):
        case_by_runtime("scan_" + name, "Scan", *states, *sequences, outputs=outputs,
                        body=graph(body), num_scan_inputs=len(sequences), **attrs)

    two = """body (float[3] a, float[2] b, float[3] x, float[2] y) =>
        (float[3] a1, float[2] b1, float[2] p, float[3] q, float[3] r) {
        half = Constant <value_float = 0.5> ()
        h = Mul(a, half)
        a1 = Add(h, x)
        sum = ReduceSum <keepdims = 0> (a1)
        c = Mul(b, y)
        b1 = Sub(c, sum)
        p = Neg(b1)
        q = Tanh(a1)
        r = Mul(x, a)
    }"""
    states, names = [floats(3), floats(2)], ["s", "t", "p", "q", "r"]
    scan("two_states", states, [floats(4, 3), floats(4, 2)], names, two)
    scan("reverse", states, [floats(4, 3), floats(4, 2)], names, two,
         scan_input_directions=[1, 1], scan_output_directions=[1, 1, 1])
    scan("directions", states, [floats(4, 3), floats(4, 2)], names, two,
         scan_input_directions=[0, 1], scan_output_directions=[1, 0, 1])
    scan("other_directions", states, [floats(4, 3), floats(4, 2)], names, two,
         scan_input_directions=[1, 0], scan_output_directions=[1, 0, 0])
    scan("axes", states, [floats(3, 4), floats(2, 4)], names, two, scan_input_axes=[1, -1],
         scan_output_axes=[1, -2, -1], scan_input_directions=[1, 0],
         scan_output_directions=[0, 1, 0])
    scan("one_step", states, [floats(1, 3), floats(2, 1)], names, two, scan_input_axes=[0, 1])
    scan("middle_axis", [floats(2, 3)], [floats(2, 4, 3)], ["s", "p"],
         """body (float[2, 3] s, float[2, 3] x) => (float[2, 3] t, float[2, 3] p) {
            y = Mul(s, x)
            t = Sin(y)
            p = Identity(t)
         }""", scan_input_axes=[-2], scan_output_axes=[-1])
    scan("without_states", [], [floats(3, 2)], ["p"],
         "body (float[2] x) => (float[2] y) { y = Exp(x) }")
    scan("without_scan_outputs", [np.array(7)], [ints(3, -1, 4)], ["s"],
         "body (int64 s, int64 x) => (int64 t) { t = Sub(x, s) }")
    scan("outer_values", [floats(2)], [floats(3, 2)], ["s", "p", "q", "u", "v"],
         """body (float[2] s, float[2] x)
            => (float[2] t, float[2] p, float[2] q, float[2] v, float[2] c)
            <float[2] b = {0.5, -1.5}> {
            y = Gemm <transB = 1> (w2, w2)
            r = Unsqueeze(s, one)
            z = MatMul(y, r)
            f = Squeeze(z, one)
            g = Add(f, b)
            h = Mul(g, b)
            t = Tanh(h)
            p = Identity(s)
            q = Identity(x)
            v = Identity(w)
            c = Constant <value_floats = [1.0, 2.0]> ()
         }""", outer={"w": floats(2), "w2": floats(2, 2), "one": ints(1)})
    scan("nested", [floats(2)], [floats(3, 4, 2)], ["s", "p"],
         """body (float[2] s, float[4, 2] rows) => (float[2] t, float[4, 2] p) {
            t, p = Scan <num_scan_inputs = 1, body = inner (float[2] u, float[2] x)
                => (float[2] v, float[2] r) {
                y = Mul(u, x)
                z = Add(y, s)
                v = Tanh(z)
                r = Mul(v, w)
            }> (s, rows)
         }""", outer={"w": floats(2)})
    scan("branch", [floats(2)], [floats(3, 2)], ["s"],
         """body (float[2] s, float[2] x) => (float[2] t) <bool yes = {1}> {
            t = If (yes) <then_branch = yes () => (float[2] a) { a = Sub(x, s) },
                          else_branch = no () => (float[2] b) { b = Add(x, s) }>
         }""")
    scan("gru", [floats(2, 3)], [floats(5, 2, 4)], ["h", "p"],
         """body (float[2, 3] h, float[2, 4] x) => (float[2, 3] next, float[2, 3] p)
            <int64[3] sizes = {3, 3, 3}, float one = {1}> {
            wx = MatMul(x, w)
            uh = MatMul(h, u)
            wz, wr, wn = Split <axis = 1> (wx, sizes)
            uz, ur, un = Split <axis = 1> (uh, sizes)
            az = Add(wz, uz)
            z = Sigmoid(az)
            ar = Add(wr, ur)
            r = Sigmoid(ar)
            rn = Mul(r, un)
            an = Add(wn, rn)
            n = Tanh(an)
            keep = Mul(z, h)
            rest = Sub(one, z)
            new = Mul(rest, n)
            next = Add(keep, new)
            p = Identity(next)
         }""", outer={"w": floats(4, 9), "u": floats(3, 9)})
    scan("linear_attention", [floats(2, 3, 2)], [floats(2, 4, n) for n in [3, 3, 2, 3]],
         ["s", "y"],
         """delta_rule (float[2, 3, 2] s, float[2, 3] q, float[2, 3] k, float[2, 2] v,
            float[2, 3] decay) => (float[2, 3, 2] t, float[2, 2] y)
            <int64[1] last = {-1}, int64[1] middle = {-2}> {
            d = Sigmoid(decay)
            rate = Unsqueeze(d, last)
            kept = Mul(s, rate)
            column = Unsqueeze(k, last)
            across = Transpose <perm = [0, 2, 1]> (kept)
            read = MatMul(across, column)
            old = Squeeze(read, last)
            delta = Sub(v, old)
            row = Unsqueeze(delta, middle)
            outer = MatMul(column, row)
            t = Add(kept, outer)
            query = Unsqueeze(q, middle)
            z = MatMul(query, t)
            y = Squeeze(z, middle)
         }""", scan_input_axes=[1] * 4, scan_output_axes=[1])


def branches():
    for condition in [False, True]:
        case_by_runtime(f"if_{condition}".lower(), "If", np.array(condition), outputs=["y", "z"],
                        known=(0,), outer={"a": floats(2), "b": floats(2)},
                        then_branch=graph("""yes () => (float[2] s, float[2] t) {
                            s = Add(a, b)
                            t = Identity(a)
                        }"""),
                        else_branch=graph("""no () => (float[2] u, float[2] v) {
                            u = Mul(a, b)
                            v = Identity(b)
                        }"""))


def loops():
    body = """body (int64 i, bool go, float[2] s) => (bool more, float[2] t, float[2] p) {
        f = Cast <to = 1> (i)
        r = Mul(s, f)
        t = Cos(r)
        p = Add(t, w)
        more = Identity(go)
    }"""
    for name, go in [("", np.array(True)), ("_without_condition", None)]:
        case_by_runtime("loop" + name, "Loop", np.array(5), go, floats(2), outputs=["s", "p"],
                        known=(0,) if go is None else (0, 1), body=graph(body),
                        outer={"w": floats(2)})
    case_by_runtime("loop_without_states", "Loop", np.array(3), None, outputs=["p"], known=(0,),
                    body=graph("""body (int64 i, bool go) => (bool more, float[2] p) {
                        more = Constant <value = bool {1}> ()
                        f = Cast <to = 1> (i)
                        p = Mul(w, f)
                    }"""), outer={"w": floats(2)})


def gradients():
    """The gradient of a scan, by central differences of onnxruntime in f64."""
    model = graph("""loss (double[2, 3] s, double[4, 2, 3] x, double[3, 3] w) => (double l) {
        last, all = Scan <num_scan_inputs = 1, scan_input_directions = [1],
            scan_output_axes = [1], body = step (double[2, 3] h, double[2, 3] u) => (double[2, 3] g, double[2, 3] p) {
            y = MatMul(h, w)
            z = Add(y, u)
            g = Tanh(z)
            p = Mul(g, h)
        }> (s, x)
        a = ReduceSum <keepdims = 0> (last)
        b = ReduceSumSquare <keepdims = 0> (all)
        l = Add(a, b)
    }""")
    session = session_of(helper.make_model(model, opset_imports=[helper.make_opsetid("", 16)]))
    given = {"s": floats(2, 3), "x": floats(4, 2, 3), "w": floats(3, 3)}
    wide = {n: x.astype(np.float64) for n, x in given.items()}
    gradients = {}
    for name, x in wide.items():
        gradient = np.zeros(x.shape)
        for i in np.ndindex(x.shape):
            step = np.zeros(x.shape)
            step[i] = 1e-5
            above, below = (session.run(None, wide | {name: x + d})[0] for d in [step, -step])
            gradient[i] = (above - below) / 2e-5
        gradients["d" + name] = gradient.astype(np.float32)
    node = {"op": "Gradient", "domain": "ai.onnx.preview.training", "inputs": list(given),
            "outputs": list(gradients), "attrs": {"xs": list(given), "y": "l"}}
    write_graph("gradient_of_scan", "onnxruntime " + onnxruntime.__version__, {"ai.onnx": 16},
                [*[node_json(n) for n in model.node], node], {}, given, gradients)


indexing()
shapes()
arithmetic()
windows()
recurrent()
quantization()
activations()
halves()
onnx_vectors()
scans()
branches()
loops()
gradients()
