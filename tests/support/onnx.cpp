#include "tests/support/onnx.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/onnx_recurrent.h"
#include "tests/support/onnx_windows.h"

namespace fluid::testing {
namespace {

using Json = nlohmann::json;
using List = std::vector<int64_t>;
using Use = std::optional<OnnxUse>;

/// The ops of equal meaning, by ONNX's name.
const std::map<std::string, std::string> kOps = {{"Abs", "abs"},
                                                 {"Acos", "acos"},
                                                 {"Add", "add"},
                                                 {"And", "logical_and"},
                                                 {"ArgMax", "argmax"},
                                                 {"ArgMin", "argmin"},
                                                 {"Asin", "asin"},
                                                 {"Atan", "atan"},
                                                 {"Ceil", "ceil"},
                                                 {"Concat", "concat"},
                                                 {"Cos", "cos"},
                                                 {"Cosh", "cosh"},
                                                 {"Div", "div"},
                                                 {"Equal", "equal"},
                                                 {"Erf", "erf"},
                                                 {"Exp", "exp"},
                                                 {"Flatten", "flatten"},
                                                 {"Floor", "floor"},
                                                 {"Gelu", "gelu"},
                                                 {"Greater", "greater"},
                                                 {"GreaterOrEqual", "greater_equal"},
                                                 {"HardSwish", "hard_swish"},
                                                 {"IsNaN", "is_nan"},
                                                 {"Less", "less"},
                                                 {"LessOrEqual", "less_equal"},
                                                 {"Log", "log"},
                                                 {"LogSoftmax", "log_softmax"},
                                                 {"MatMul", "matmul"},
                                                 {"Max", "maximum"},
                                                 {"Min", "minimum"},
                                                 {"Mish", "mish"},
                                                 {"Mul", "mul"},
                                                 {"Neg", "neg"},
                                                 {"Not", "logical_not"},
                                                 {"Or", "logical_or"},
                                                 {"Pow", "pow"},
                                                 {"Reciprocal", "reciprocal"},
                                                 {"ReduceL1", "norm_l1"},
                                                 {"ReduceL2", "norm_l2"},
                                                 {"ReduceLogSum", "logsumexp"},
                                                 {"ReduceLogSumExp", "logsumexp"},
                                                 {"ReduceMax", "max"},
                                                 {"ReduceMean", "mean"},
                                                 {"ReduceMin", "min"},
                                                 {"ReduceProd", "prod"},
                                                 {"ReduceSum", "sum"},
                                                 {"ReduceSumSquare", "sum_squares"},
                                                 {"Relu", "relu"},
                                                 {"Round", "round"},
                                                 {"Sigmoid", "sigmoid"},
                                                 {"Sign", "sign"},
                                                 {"Sin", "sin"},
                                                 {"Sinh", "sinh"},
                                                 {"Softmax", "softmax"},
                                                 {"Softplus", "softplus"},
                                                 {"Softsign", "softsign"},
                                                 {"Sqrt", "sqrt"},
                                                 {"Sub", "sub"},
                                                 {"Tan", "tan"},
                                                 {"Tanh", "tanh"},
                                                 {"Transpose", "transpose"},
                                                 {"Where", "where"},
                                                 {"Xor", "logical_xor"}};

bool is_reduction(const std::string& op) { return op.starts_with("Reduce"); }

/// The extremum of bools, where true counts as 1.
const std::map<std::string, std::string> kBoolOps = {{"ReduceMax", "any"}, {"ReduceMin", "all"}};

bool is_defined_over_nothing(const std::string& op) {
  return op != "ReduceMax" && op != "ReduceMin" && op != "ReduceMean";
}

/// Whether the vector asks for what our op of that name does: no broadcasting of old, no mixed or
/// integer powers, no vectors in matmul, no reduction of nothing, and exactly two operands for the
/// binary ops.
bool applies(const Json& node, const std::vector<Tensor>& inputs) {
  const std::string op = node.at("op");
  for (const Tensor& t : inputs) {
    const bool index = &t != &inputs[0] && is_reduction(op);
    if (!index && op != "Where" && t.dtype() != inputs[0].dtype()) return false;
    if (op == "MatMul" && t.shape().size() < 2) return false;
  }
  const Json& attrs = node.at("attrs");
  if (attrs.contains("broadcast")) return false;
  if (op.starts_with("Arg")) return !attrs.contains("select_last_index");
  if (op == "Flatten") return attrs.value("axis", 1) == 1;
  if (is_reduction(op)) {
    if (attrs.contains("noop_with_empty_axes")) return false;
    if (inputs[0].dtype() == boolean) return kBoolOps.contains(op);
    return is_float(inputs[0].dtype()) && (inputs[0].numel() > 0 || is_defined_over_nothing(op));
  }
  if (op == "Pow" || op == "Div" || op == "Abs") return is_float(inputs[0].dtype());
  return (op != "Max" && op != "Min") || inputs.size() == 2;
}

/// log(sum(x)) is logsumexp(log(x)).
Tensor logarithms(const Tensor& x) {
  Tensor y = x.cast(f64);
  for (double& v : y.as<double>()) v = std::log(v);
  return y.cast(x.dtype());
}

Attrs attrs_of(const Json& node, std::vector<Tensor>& inputs) {
  const std::string op = node.at("op");
  const Json& given = node.at("attrs");
  Attrs attrs;
  if (given.contains("perm")) attrs.set("perm", given.at("perm").get<List>());
  if (given.contains("approximate"))
    attrs.set("approximate", given.at("approximate").get<std::string>());
  if (given.contains("axis")) attrs.set("axis", given.at("axis").get<int64_t>());
  const bool arg = op.starts_with("Arg");
  if (arg && !given.contains("axis")) attrs.set("axis", int64_t{0});
  if (arg || is_reduction(op)) attrs.set("keep_dims", given.value("keepdims", 1) != 0);
  if (!is_reduction(op)) return attrs;
  List axes = given.value("axes", List{});
  if (inputs.size() > 1) {
    for (int64_t i = 0; i < inputs[1].numel(); ++i)
      axes.push_back(inputs[1].as<int64_t>()[static_cast<size_t>(i)]);
  }
  inputs.resize(1);
  if (op == "ReduceLogSum") inputs[0] = logarithms(inputs[0]);
  attrs.set("axes", axes);
  return attrs;
}

List list_of(const Tensor& t) {
  List list;
  for (int64_t i = 0; i < t.numel(); ++i) list.push_back(static_cast<int64_t>(t.at(i)));
  return list;
}

Attrs to_shape(const Tensor& x, const List& shape) {
  return {{"to", Type{x.dtype(), Shape(shape.begin(), shape.end()), {}}}};
}

bool is_given(const std::vector<Tensor>& in, size_t i) {
  return i < in.size() && in[i].numel() > 0;
}

Use pad(const Json& given, const std::vector<Tensor>& in) {
  const std::string mode = given.value("mode", "constant");
  if (mode == "wrap" || (in.size() < 2 && !given.contains("pads"))) return std::nullopt;
  const auto rank = static_cast<int64_t>(in[0].shape().size());
  const List pads = in.size() < 2 ? given.at("pads").get<List>() : list_of(in[1]);
  List axes;
  if (in.size() > 3) axes = list_of(in[3]);
  for (int64_t d = 0; in.size() < 4 && d < rank; ++d) axes.push_back(d);
  List low(static_cast<size_t>(rank)), high(low);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
    low[d] = pads[i];
    high[d] = pads[axes.size() + i];
    if (low[d] < 0 || high[d] < 0) return std::nullopt;
  }
  const double value = is_given(in, 2) ? in[2].item() : given.value("value", 0.0);
  return OnnxUse{
      "pad", {in[0]}, {{"low", low}, {"high", high}, {"value", value}, {"mode", mode}}, {}};
}

Use slice(const Json&, const std::vector<Tensor>& in) {
  if (in.size() < 3) return std::nullopt;
  Attrs attrs = {{"starts", list_of(in[1])}, {"stops", list_of(in[2])}};
  if (in.size() > 3) attrs.set("axes", list_of(in[3]));
  if (in.size() > 4) attrs.set("steps", list_of(in[4]));
  return OnnxUse{"slice", {in[0]}, attrs, {}};
}

/// 0 keeps an extent, -1 takes what the others leave.
Use reshape(const Json& given, const std::vector<Tensor>& in) {
  if (in.size() != 2 || given.contains("allowzero") || in[0].numel() == 0) return std::nullopt;
  List shape = list_of(in[1]);
  int64_t left = in[0].numel();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) shape[d] = in[0].shape()[d];
    if (shape[d] > 0) left /= shape[d];
  }
  for (int64_t& extent : shape) extent = extent < 0 ? left : extent;
  return OnnxUse{"reshape", {in[0]}, to_shape(in[0], shape), {}};
}

/// Broadcasts both ways: an extent of 1 in the asked shape keeps the operand's.
Use expand(const Json&, const std::vector<Tensor>& in) {
  List shape = list_of(in[1]);
  const List& from = in[0].shape();
  while (shape.size() < from.size()) shape.insert(shape.begin(), 1);
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t& extent = shape[shape.size() - from.size() + d];
    if (extent == 1) extent = from[d];
  }
  return OnnxUse{"broadcast_to", {in[0]}, to_shape(in[0], shape), {}};
}

/// As in inference; a vector that trains knows another generator's numbers.
Use dropout(const Json&, const std::vector<Tensor>& in) {
  if (in.size() != 1) return std::nullopt;
  return OnnxUse{"dropout", {in[0], Tensor(i64, {3})}, {}, {}};
}

/// A float attribute: its name in ONNX, its name in our op, and ONNX's default.
struct FloatAttr {
  std::string onnx, ours;
  double fallback;
};
/// An op of one operand that has float attributes.
Use with_floats(const std::string& op, const Json& given, const std::vector<Tensor>& in,
                const std::vector<FloatAttr>& names) {
  OnnxUse use{op, {in[0]}, {}, {}};
  for (const FloatAttr& n : names) use.attrs.set(n.ours, given.value(n.onnx, n.fallback));
  return use;
}

/// Only with the constants of the paper.
Use selu(const Json& given, const std::vector<Tensor>& in) {
  const double alpha = given.value("alpha", 1.67326), gamma = given.value("gamma", 1.0507);
  if (std::abs(alpha - 1.67326) > 1e-4 || std::abs(gamma - 1.0507) > 1e-4) return std::nullopt;
  return OnnxUse{"selu", in, {}, {}};
}

Use swish(const Json& given, const std::vector<Tensor>& in) {
  if (given.value("alpha", 1.0) != 1) return std::nullopt;
  return OnnxUse{"silu", in, {}, {}};
}

/// With one slope, or one per channel.
Use prelu(const Json&, const std::vector<Tensor>& in) {
  const List &x = in[0].shape(), &slope = in[1].shape();
  OnnxUse use{"prelu", in, {}, {}};
  use.operands[1] = Tensor(in[1].dtype(), {in[1].numel()});
  std::memcpy(use.operands[1].data(), in[1].data(), static_cast<size_t>(in[1].bytes()));
  if (in[1].numel() == 1) return use;
  const bool channels = x.size() > 1 && in[1].numel() == x[1];
  const bool plain = slope.size() == 1 && (x.size() == 2 || x.back() != x[1]);
  const bool aligned = slope.size() + 1 == x.size() && slope[0] == in[1].numel();
  return channels && (plain || aligned) ? Use(use) : std::nullopt;
}

/// The remainder of floor division.
Use mod(const Json& given, const std::vector<Tensor>& in) {
  if (given.value("fmod", 0) != 0) return std::nullopt;
  return OnnxUse{"mod", in, {}, {}};
}

Use clip(const Json& given, const std::vector<Tensor>& in) {
  OnnxUse use{"clip", {in[0]}, {}, {}};
  for (const auto& [name, i] : {std::pair("min", 1), std::pair("max", 2)}) {
    if (given.contains(name)) use.attrs.set(name, given.at(name).get<double>());
    const auto bound = static_cast<size_t>(i);
    if (is_given(in, bound)) use.attrs.set(name, in[bound].item());
  }
  return use.attrs.empty() ? std::nullopt : Use(use);
}

Use is_inf(const Json& given, const std::vector<Tensor>& in) {
  OnnxUse use{"is_inf", in, {}, {}};
  for (const char* name : {"detect_positive", "detect_negative"}) {
    use.attrs.set(name, given.value(name, 1) != 0);
  }
  return use;
}

Use tile(const Json&, const std::vector<Tensor>& in) {
  if (in.size() != 2) return std::nullopt;
  return OnnxUse{"tile", {in[0]}, {{"repeats", list_of(in[1])}}, {}};
}

/// Squeeze or Unsqueeze.
Use with_axes(const std::string& op, const Json& given, const std::vector<Tensor>& in) {
  const List axes = in.size() > 1 ? list_of(in[1]) : given.value("axes", List{});
  return OnnxUse{op, {in[0]}, {{"axes", axes}}, {}};
}

Use trilu(const Json& given, const std::vector<Tensor>& in) {
  const int64_t diagonal = is_given(in, 1) ? in[1].integer(0) : 0;
  return OnnxUse{
      given.value("upper", 1) != 0 ? "triu" : "tril", {in[0]}, {{"diagonal", diagonal}}, {}};
}

/// In equal parts where the node gives no sizes; the last of `num_outputs` parts may be smaller.
Use split(const Json& node, const std::vector<Tensor>& in) {
  const Json& given = node.at("attrs");
  const auto rank = static_cast<int64_t>(in[0].shape().size());
  const auto parts = static_cast<int64_t>(node.at("outputs").size());
  const int64_t axis = given.value("axis", int64_t{0});
  const int64_t extent = in[0].shape()[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  List sizes = is_given(in, 1) ? list_of(in[1]) : given.value("split", List{});
  const int64_t whole = (extent + parts - 1) / parts;
  for (int64_t left = extent; sizes.size() < static_cast<size_t>(parts); left -= sizes.back()) {
    sizes.push_back(std::min(whole, left));
  }
  OnnxUse use{"split", {in[0]}, {{"sizes", sizes}, {"axis", axis}}, {}};
  use.results = sizes.size();
  return use;
}

Use range(const Json&, const std::vector<Tensor>& in) {
  const double start = in[0].item(), step = in[2].item();
  const auto n = static_cast<int64_t>(std::max(std::ceil((in[1].item() - start) / step), 0.0));
  const Type type{in[0].dtype(), {n}, {}};
  return OnnxUse{"arange", {}, {{"type", type}, {"start", start}, {"step", step}}, {}};
}

/// The class axis of ONNX's losses is 1.
Use class_loss(const std::string& op, const Json& given, const std::vector<Tensor>& in) {
  Attrs attrs = {{"axis", int64_t{1}}, {"reduction", given.value("reduction", "mean")}};
  if (given.contains("ignore_index")) attrs.set("ignore_index", List{given.at("ignore_index")});
  return OnnxUse{op, in, attrs, {}};
}

Use normalization(const std::string& op, const Json& given, const std::vector<Tensor>& in,
                  Attrs attrs = {}) {
  if (given.contains("epsilon")) attrs.set("eps", given.at("epsilon").get<double>());
  if (given.contains("axis")) attrs.set("axis", given.at("axis").get<int64_t>());
  return OnnxUse{op, in, attrs, {}};
}

/// Absent for a window of even size, which lies elsewhere in ONNX.
Use lrn(const Json& given, const std::vector<Tensor>& in) {
  const auto size = given.at("size").get<int64_t>();
  if (size % 2 == 0) return std::nullopt;
  return OnnxUse{"lrn",
                 in,
                 {{"size", size},
                  {"alpha", given.value("alpha", 1e-4)},
                  {"beta", given.value("beta", 0.75)},
                  {"k", given.value("bias", 1.0)}},
                 {}};
}

Use lp_normalization(const Json& given, const std::vector<Tensor>& in) {
  return OnnxUse{"lp_normalize",
                 in,
                 {{"axis", given.value("axis", int64_t{-1})}, {"p", given.value("p", int64_t{2})}},
                 {}};
}

int64_t axis_of(const Json& given, const Tensor& x, int64_t fallback) {
  const int64_t axis = given.value("axis", fallback);
  return axis < 0 ? axis + static_cast<int64_t>(x.shape().size()) : axis;
}

/// ONNX counts negative indices from the end.
Tensor from_start(const Tensor& index, const Tensor& x, int64_t axis) {
  Tensor t = index.cast(i64);
  for (int64_t& i : t.as<int64_t>()) i += i < 0 ? x.shape()[static_cast<size_t>(axis)] : 0;
  return t;
}

/// Gather, GatherElements or ScatterElements.
Use indexed(const std::string& op, const Json& given, const std::vector<Tensor>& in) {
  const int64_t axis = axis_of(given, in[0], 0);
  OnnxUse use{op, in, {{"axis", axis}}, {}};
  use.operands[1] = from_start(in[1], in[0], axis);
  if (given.contains("reduction"))
    use.attrs.set("reduce", given.at("reduction").get<std::string>());
  return use;
}

Use gather_nd(const Json& given, const std::vector<Tensor>& in) {
  return OnnxUse{"gather_nd", in, {{"batch_dims", given.value("batch_dims", int64_t{0})}}, {}};
}

Use scatter_nd(const Json& given, const std::vector<Tensor>& in) {
  return OnnxUse{"scatter_nd", in, {{"reduce", given.value("reduction", "none")}}, {}};
}

/// CumSum or CumProd.
Use cumulative(const std::string& op, const Json& given, const std::vector<Tensor>& in) {
  Attrs attrs = {{"axis", in[1].integer(0)}};
  for (const char* name : {"exclusive", "reverse"}) attrs.set(name, given.value(name, 0) != 0);
  return OnnxUse{op, {in[0]}, attrs, {}};
}

Use topk(const Json& given, const std::vector<Tensor>& in) {
  if (in.size() != 2) return std::nullopt;
  OnnxUse use{"topk", {in[0]}, {{"k", in[1].integer(0)}, {"axis", axis_of(given, in[0], -1)}}, {}};
  for (const char* name : {"largest", "sorted"}) use.attrs.set(name, given.value(name, 1) != 0);
  use.results = 2;
  return use;
}

Use einsum(const Json& given, const std::vector<Tensor>& in) {
  return OnnxUse{"einsum", in, {{"equation", given.at("equation").get<std::string>()}}, {}};
}

/// [N, H, T, D] with rows of the caches at the positions, or with a cache [N, T, R / 2].
Use rotary(const Json& given, const std::vector<Tensor>& in) {
  if (in[0].shape().size() != 4) return std::nullopt;
  OnnxUse use{"apply_rotary_embedding", {in[0]}, {}, {}};
  use.attrs.set("interleaved", given.value("interleaved", 0) != 0);
  const int64_t pairs = in[1].shape().back();
  for (const size_t cache : {1, 2}) {
    Tensor rows(in[cache].dtype(), {in[0].shape()[0], 1, in[0].shape()[2], pairs});
    for (int64_t i = 0; i < rows.numel(); ++i) {
      const int64_t row = is_given(in, 3) ? in[3].integer(i / pairs) : i / pairs;
      rows.as<float>()[static_cast<size_t>(i)] =
          in[cache].as<float>()[static_cast<size_t>(row * pairs + i % pairs)];
    }
    use.operands.push_back(rows);
  }
  return use;
}

using Translate = std::function<Use(const Json& attrs, const std::vector<Tensor>& inputs)>;

const std::map<std::string, Translate> kTranslations = {
    {"Conv", convolution},
    {"ConvTranspose", transposed_convolution},
    {"MaxPool", max_pool},
    {"AveragePool", average_pool},
    {"LpPool", lp_pool},
    {"Resize", resize},
    {"Upsample", upsample},
    {"GlobalMaxPool",
     [](const Json&, const auto& in) { return global_pool("adaptive_max_pool2d", in); }},
    {"GlobalAveragePool",
     [](const Json&, const auto& in) { return global_pool("adaptive_avg_pool2d", in); }},
    {"Pad", pad},
    {"Slice", slice},
    {"Reshape", reshape},
    {"Expand", expand},
    {"Dropout", dropout},
    {"Clip", clip},
    {"Celu",
     [](const Json& a, const auto& in) {
       return with_floats("celu", a, in, {{"alpha", "alpha", 1}});
     }},
    {"Elu",
     [](const Json& a, const auto& in) {
       return with_floats("elu", a, in, {{"alpha", "alpha", 1}});
     }},
    {"HardSigmoid",
     [](const Json& a, const auto& in) {
       return with_floats("hard_sigmoid", a, in, {{"alpha", "alpha", 0.2}, {"beta", "beta", 0.5}});
     }},
    {"CumProd", [](const Json& a, const auto& in) { return cumulative("cumprod", a, in); }},
    {"CumSum", [](const Json& a, const auto& in) { return cumulative("cumsum", a, in); }},
    {"Einsum", einsum},
    {"Gather", [](const Json& a, const auto& in) { return indexed("gather", a, in); }},
    {"GatherElements",
     [](const Json& a, const auto& in) { return indexed("take_along_axis", a, in); }},
    {"GatherND", gather_nd},
    {"IsInf", is_inf},
    {"LeakyRelu",
     [](const Json& a, const auto& in) {
       return with_floats("leaky_relu", a, in, {{"alpha", "negative_slope", 0.01}});
     }},
    {"Mod", mod},
    {"PRelu", prelu},
    {"Range", range},
    {"RotaryEmbedding", rotary},
    {"Scatter", [](const Json& a, const auto& in) { return indexed("scatter", a, in); }},
    {"ScatterElements", [](const Json& a, const auto& in) { return indexed("scatter", a, in); }},
    {"ScatterND", scatter_nd},
    {"Selu", selu},
    {"Squeeze", [](const Json& a, const auto& in) { return with_axes("squeeze", a, in); }},
    {"Swish", swish},
    {"Tile", tile},
    {"TopK", topk},
    {"Trilu", trilu},
    {"Unsqueeze", [](const Json& a, const auto& in) { return with_axes("unsqueeze", a, in); }},
    {"LayerNormalization",
     [](const Json& given, const auto& in) { return normalization("layer_norm", given, in); }},
    {"RMSNormalization",
     [](const Json& given, const auto& in) { return normalization("rms_norm", given, in); }},
    {"InstanceNormalization",
     [](const Json& given, const auto& in) { return normalization("instance_norm", given, in); }},
    {"GroupNormalization",
     [](const Json& given, const auto& in) {
       return normalization("group_norm", given, in,
                            {{"groups", given.at("num_groups").get<int64_t>()}});
     }},
    {"LRN", lrn},
    {"LpNormalization", lp_normalization},
    {"NegativeLogLikelihoodLoss",
     [](const Json& given, const auto& in) { return class_loss("nll_loss", given, in); }},
    {"SoftmaxCrossEntropyLoss", [](const Json& given, const auto& in) {
       return class_loss("softmax_cross_entropy", given, in);
     }}};

}  // namespace

std::optional<OnnxUse> use_of(const Json& node, const std::vector<Tensor>& inputs) {
  const std::string op = node.at("op");
  if (op == "Split") return split(node, inputs);
  if (op == "RNN" || op == "GRU" || op == "LSTM") return recurrent(node, inputs);
  const auto translation = kTranslations.find(op);
  if (translation != kTranslations.end()) return translation->second(node.at("attrs"), inputs);
  const auto same = kOps.find(op);
  if (same == kOps.end() || !applies(node, inputs)) return std::nullopt;
  const bool bools = kBoolOps.contains(same->first) && inputs[0].dtype() == boolean;
  OnnxUse use{bools ? kBoolOps.at(same->first) : same->second, inputs, {}, {}};
  use.attrs = attrs_of(node, use.operands);
  return use;
}

}  // namespace fluid::testing
