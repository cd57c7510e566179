// Elementwise operators.

#include <cmath>

#include "frontend/layers.h"
#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

/// Unary operators without attributes: ONNX name -> op.
const std::map<std::string, const char*> kUnary = {
    {"Abs", "abs"},   {"Acos", "acos"},   {"Asin", "asin"},         {"Atan", "atan"},
    {"Ceil", "ceil"}, {"Cos", "cos"},     {"Cosh", "cosh"},         {"Erf", "erf"},
    {"Exp", "exp"},   {"Floor", "floor"}, {"IsNaN", "is_nan"},      {"Log", "log"},
    {"Mish", "mish"}, {"Neg", "neg"},     {"Not", "logical_not"},   {"Reciprocal", "reciprocal"},
    {"Relu", "relu"}, {"Round", "round"}, {"Sigmoid", "sigmoid"},   {"Sign", "sign"},
    {"Sin", "sin"},   {"Sinh", "sinh"},   {"Softplus", "softplus"}, {"Softsign", "softsign"},
    {"Sqrt", "sqrt"}, {"Tan", "tan"},     {"Tanh", "tanh"}};

/// Binary operators that broadcast: ONNX name -> op.
const std::map<std::string, const char*> kBinary = {
    {"Add", "add"},        {"And", "logical_and"},
    {"Equal", "equal"},    {"Greater", "greater"},
    {"Less", "less"},      {"GreaterOrEqual", "greater_equal"},
    {"Mul", "mul"},        {"LessOrEqual", "less_equal"},
    {"Or", "logical_or"},  {"Sub", "sub"},
    {"Xor", "logical_xor"}};

/// The second operand of a binary operator, reshaped for broadcasting. Before operator set 7, with
/// `broadcast`, its first dimension is aligned with dimension `axis` of the first operand. Without
/// `axis`, the last dimensions are aligned.
Value second_operand(const Context& c) {
  const Value b = c.input(1);
  if (!c.bool_attr("broadcast", false) || !c.has_attr("axis")) return b;
  const int64_t rank = c.input(0).shape().rank();
  const int64_t axis = normalize_axis(c.int_attr("axis", 0), rank);
  Ints trailing;
  for (int64_t d = b.shape().rank(); d < rank - axis; ++d) trailing.push_back(d);
  return trailing.empty() ? b : unsqueeze(b, {.axes = trailing});
}

/// Div. Divides integers in f64 and truncates, which is exact for magnitudes below 2^53.
Value divide(const Context& c) {
  const Value a = c.input(0), b = second_operand(c);
  if (is_float(a.dtype())) return div(a, b);
  return cast(trunc(div(cast(a, f64), cast(b, f64))), a.dtype());
}

/// Pow. The result has the dtype of the base. Integer powers are computed in f64, which is exact
/// for magnitudes below 2^53.
Value power(const Context& c) {
  const Value a = c.input(0), b = second_operand(c);
  const DType dtype = a.dtype();
  if (is_float(dtype)) return pow(a, cast(b, dtype));
  return cast(pow(cast(a, f64), cast(b, f64)), dtype);
}

/// Mod. With attribute `fmod`, the remainder has the sign of the dividend.
Value modulo(const Context& c) {
  const Value a = c.input(0), b = c.input(1);
  if (!c.bool_attr("fmod", false)) return mod(a, b);
  const Value remainder = mod(abs(a), abs(b));
  return where(less(a, scalar_like(a, 0)), neg(remainder), remainder);
}

using Combine = Value (*)(Value, Value, const Loc&);

Mapping variadic(Combine combine) {
  return [combine](const Context& c) {
    Value y = c.input(0);
    for (size_t i = 1; i < c.num_inputs(); ++i) y = combine(y, c.input(i), c.loc());
    return Operands{y};
  };
}

Value mean_of_inputs(const Context& c) {
  Value y = c.input(0);
  for (size_t i = 1; i < c.num_inputs(); ++i) y = y + c.input(i);
  return y / static_cast<double>(c.num_inputs());
}

/// Clip. Constant bounds become attributes of op clip. If min exceeds max, the result is max.
Value clipped(const Context& c) {
  Value x = c.input(0);
  ClipAttrs bounds{.min = c.float_attr("min", -double{INFINITY}),
                   .max = c.float_attr("max", double{INFINITY})};
  const Tensor *low = c.find_constant(1), *high = c.find_constant(2);
  if (low != nullptr) bounds.min = low->item();
  if (high != nullptr) bounds.max = high->item();
  if (c.has_input(1) && low == nullptr) x = maximum(x, c.input(1));
  if (std::isfinite(bounds.min) || std::isfinite(bounds.max)) {
    bounds.min = std::min(bounds.min, bounds.max);
    x = clip(x, bounds);
  }
  return c.has_input(2) && high == nullptr ? minimum(x, c.input(2)) : x;
}

Value scaled_selu(const Context& c) {
  const double alpha = c.float_attr("alpha", 1.67326319217681884765625);
  const double gamma = c.float_attr("gamma", 1.05070102214813232421875);
  return elu(c.input(0), {.alpha = alpha}) * gamma;
}

/// PRelu: x where x is positive, else slope * x. The slope broadcasts to x. Before operator set 7,
/// a slope of shape [C] broadcasts along dimension 1.
Value sloped(const Context& c) {
  const Value x = c.input(0);
  Value slope = c.input(1);
  const int64_t rank = x.shape().rank(), slopes = slope.shape().rank();
  if (c.opset() < 7 && slopes == 1 && !slope.shape()[0].is(1)) {
    Shape channels(static_cast<size_t>(rank), Dim(1));
    channels[1] = slope.shape()[0];
    slope = reshape(slope, channels);
  }
  return where(greater(x, scalar_like(x, 0)), x, slope * x);
}

Value swished(const Context& c) {
  const Value x = c.input(0);
  const double alpha = c.float_attr("alpha", 1);
  return alpha == 1 ? silu(x) : x * sigmoid(x * alpha);
}

/// SwiGLU: swish(a) * b for inputs a and b.
Value gated(const Context& c) { return swished(c) * c.input(1); }

Value above_threshold(const Context& c) {
  const Value x = c.input(0), zero = scalar_like(x, 0);
  return where(greater(x, scalar_like(x, c.float_attr("alpha", 1))), x, zero);
}

Value shrunk(const Context& c) {
  const Value x = c.input(0);
  const double lambda = c.float_attr("lambd", 0.5), bias = c.float_attr("bias", 0);
  const Value positive = greater(x, scalar_like(x, lambda));
  const Value negative = less(x, scalar_like(x, -lambda));
  return where(positive, x - bias, where(negative, x + bias, scalar_like(x, 0)));
}

/// Returns asinh of a >= 0: log(a + sqrt(a^2 + 1)), without cancellation for small a and without
/// overflow of a^2. Divides by m = max(a, 1): with t = a / m and r = 1 / m, the result is
/// log(m) + log(t + sqrt(t^2 + r^2)).
Value area_sinh_of_positive(Value a) {
  const Value one = scalar_like(a, 1), m = maximum(a, one), t = minimum(a, one);
  const Value t2 = square(t), r2 = square(one / m);
  return log(m) + log1p(t + (t2 + (r2 - 1.0)) / (sqrt(t2 + r2) + 1.0));
}

Value area_sinh(const Context& c) {
  const Value x = c.input(0), y = area_sinh_of_positive(abs(x));
  return where(less(x, scalar_like(x, 0)), neg(y), y);
}

/// Acosh x is asinh(sqrt(x^2 - 1)). The factors x - 1 and x + 1 avoid cancellation, and their own
/// square roots avoid overflow.
Value area_cosh(const Context& c) {
  const Value x = c.input(0);
  return area_sinh_of_positive(sqrt(x - 1.0) * sqrt(x + 1.0));
}

Value area_tanh(const Context& c) {
  const Value x = c.input(0);
  return (log1p(x) - log1p(neg(x))) * 0.5;
}

/// Dropout. In inference, returns the input and an all-true mask. In training, returns only the
/// output, not the random mask. The random numbers differ from those of other ONNX implementations.
Operands dropped(const Context& c) {
  const Value x = c.input(0);
  const bool training = c.has_input(2) && c.constant(2).item() != 0;
  const double p = c.has_input(1) ? c.constant(1).item() : c.float_attr("ratio", 0.5);
  if (!training || p == 0) {
    return {x, fill(c.graph(), {.type = Type{boolean, x.shape(), {}}, .value = 1})};
  }
  if (c.has_attr("seed"))
    c.fail_unsupported("training with a seed: the random numbers would differ");
  return {dropout(x, {.p = p}, c.loc())};
}

Value infinite(const Context& c) {
  return is_inf(c.input(0), {.detect_positive = c.bool_attr("detect_positive", true),
                             .detect_negative = c.bool_attr("detect_negative", true)});
}

Value converted(const Context& c) { return cast(c.input(0), dtype_of(c, c.int_attr("to", 0))); }

using Function = Value (*)(const Context&);

const std::map<std::string, Function> kFunctions = {
    {"Acosh", area_cosh},
    {"Asinh", area_sinh},
    {"Atanh", area_tanh},
    {"Cast", converted},
    {"CastLike", [](const Context& c) { return cast(c.input(0), c.input(1).dtype()); }},
    {"Celu",
     [](const Context& c) { return celu(c.input(0), {.alpha = c.float_attr("alpha", 1)}); }},
    {"Clip", clipped},
    {"Div", divide},
    {"Elu", [](const Context& c) { return elu(c.input(0), {.alpha = c.float_attr("alpha", 1)}); }},
    {"Gelu",
     [](const Context& c) {
       return gelu(c.input(0), {.approximate = c.string_attr("approximate", "none")});
     }},
    {"HardSigmoid",
     [](const Context& c) {
       return hard_sigmoid(
           c.input(0), {.alpha = c.float_attr("alpha", 0.2), .beta = c.float_attr("beta", 0.5)});
     }},
    {"HardSwish",  // ONNX's definition, without the product of hard_swish that may overflow
     [](const Context& c) {
       return c.input(0) * hard_sigmoid(c.input(0), {.alpha = 1.0 / 6, .beta = 0.5});
     }},
    {"IsInf", infinite},
    {"LeakyRelu",
     [](const Context& c) {
       return leaky_relu(c.input(0), {.negative_slope = c.float_attr("alpha", 0.01)});
     }},
    {"Mean", mean_of_inputs},
    {"Mod", modulo},
    {"PRelu", sloped},
    {"Pow", power},
    {"Selu", scaled_selu},
    {"Shrink", shrunk},
    {"SwiGLU", gated},
    {"Swish", swished},
    {"ThresholdedRelu", above_threshold},
    {"Where", [](const Context& c) { return where(c.input(0), c.input(1), c.input(2)); }}};

}  // namespace

void add_elementwise(Mappings& all) {
  for (const auto& [name, op] : kUnary) {
    all[name] = [op](const Context& c) {
      return Operands{record(c.graph(), op, {c.input(0)}, {}, c.loc())[0]};
    };
  }
  for (const auto& [name, op] : kBinary) {
    all[name] = [op](const Context& c) {
      return Operands{record(c.graph(), op, {c.input(0), second_operand(c)}, {}, c.loc())[0]};
    };
  }
  for (const auto& [name, function] : kFunctions) {
    all[name] = [function](const Context& c) { return Operands{function(c)}; };
  }
  // Constants stay known.
  all["Identity"] = [](const Context& c) { return Operands{c.operand(0)}; };
  all["Max"] = variadic(maximum);
  all["Min"] = variadic(minimum);
  all["Sum"] = variadic(add);
  all["Dropout"] = dropped;
}

}  // namespace fluid::onnx
