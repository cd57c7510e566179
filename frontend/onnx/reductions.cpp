// Reductions, the softmax family, cumulative sums and order statistics.

#include <cmath>
#include <limits>

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

struct Reduction {
  Ints axes;  ///< empty: all axes
  bool keep_dims;
};

/// Records a reduction of x. Reductions without an integer op convert integers to f64.
using Reduce = Value (*)(Value x, const Reduction& r);

Value reduce_l1(Value x, const Reduction& r) {
  return is_float(x.dtype()) ? norm_l1(x, {.axes = r.axes, .keep_dims = r.keep_dims})
                             : sum(abs(x), {.axes = r.axes, .keep_dims = r.keep_dims});
}

Value reduce_sum(Value x, const Reduction& r) {
  return sum(x, {.axes = r.axes, .keep_dims = r.keep_dims});
}

Value reduce_sum_square(Value x, const Reduction& r) { return reduce_sum(square(x), r); }

Value reduce_l2(Value x, const Reduction& r) {
  if (is_float(x.dtype())) return norm_l2(x, {.axes = r.axes, .keep_dims = r.keep_dims});
  return cast(sqrt(cast(reduce_sum_square(x, r), f64)), x.dtype());
}

Value reduce_log_sum(Value x, const Reduction& r) {
  return is_float(x.dtype()) ? log(reduce_sum(x, r))
                             : cast(log(cast(reduce_sum(x, r), f64)), x.dtype());
}

Value reduce_log_sum_exp(Value x, const Reduction& r) {
  const LogsumexpAttrs attrs{.axes = r.axes, .keep_dims = r.keep_dims};
  return is_float(x.dtype()) ? logsumexp(x, attrs)
                             : cast(logsumexp(cast(x, f64), attrs), x.dtype());
}

Value reduce_mean(Value x, const Reduction& r) {
  const MeanAttrs attrs{.axes = r.axes, .keep_dims = r.keep_dims};
  return is_float(x.dtype()) ? mean(x, attrs) : cast(mean(cast(x, f64), attrs), x.dtype());
}

Value reduce_prod(Value x, const Reduction& r) {
  return prod(x, {.axes = r.axes, .keep_dims = r.keep_dims});
}

double least(DType dtype) {
  if (is_float(dtype)) return -double{INFINITY};
  if (dtype == i32) return std::numeric_limits<int32_t>::min();
  if (dtype == i8) return std::numeric_limits<int8_t>::min();
  return dtype == u8 ? 0 : static_cast<double>(std::numeric_limits<int64_t>::min());
}

/// The maximum or minimum. For bools, true is the maximum.
template <bool kMaximum>
Value reduce_extremum(Value x, const Reduction& r) {
  if (x.dtype() == boolean) {
    return kMaximum ? any(x, {.axes = r.axes, .keep_dims = r.keep_dims})
                    : all(x, {.axes = r.axes, .keep_dims = r.keep_dims});
  }
  return kMaximum ? max(x, {.axes = r.axes, .keep_dims = r.keep_dims})
                  : min(x, {.axes = r.axes, .keep_dims = r.keep_dims});
}

const std::map<std::string, Reduce> kReductions = {{"ReduceL1", reduce_l1},
                                                   {"ReduceL2", reduce_l2},
                                                   {"ReduceLogSum", reduce_log_sum},
                                                   {"ReduceLogSumExp", reduce_log_sum_exp},
                                                   {"ReduceMax", reduce_extremum<true>},
                                                   {"ReduceMean", reduce_mean},
                                                   {"ReduceMin", reduce_extremum<false>},
                                                   {"ReduceProd", reduce_prod},
                                                   {"ReduceSum", reduce_sum},
                                                   {"ReduceSumSquare", reduce_sum_square}};

/// If x has no elements, returns the identity of ReduceMax or ReduceMin, such as the smallest value
/// of the dtype for ReduceMax. Otherwise returns nullopt.
std::optional<Value> extremum_of_nothing(const Context& c, Value x, const Reduction& r) {
  const bool maximum = c.op() == "ReduceMax";
  if ((!maximum && c.op() != "ReduceMin") || x.dtype() == boolean || !x.shape().numel().is(0)) {
    return std::nullopt;
  }
  const Type type = reduce_sum(x, r).type();
  if (!maximum && !is_float(x.dtype())) c.fail_unsupported("the minimum of no integers");
  return fill(c.graph(), {.type = type, .value = maximum ? least(x.dtype()) : double{INFINITY}});
}

Operands reduced(const Context& c, Reduce reduce) {
  const Value x = c.input(0);
  Reduction r{c.ints_attr("axes"), c.bool_attr("keepdims", true)};
  if (c.has_input(1)) r.axes = Ints(c.constant_integers(1));
  if (r.axes.empty() && c.bool_attr("noop_with_empty_axes", false)) {
    // Reduces each element separately, over an added axis of extent 1, as ONNX specifies.
    const Shape shape = x.shape();
    return {reduce(unsqueeze(x, {.axes = shape.rank()}), {shape.rank(), false})};
  }
  if (const auto nothing = extremum_of_nothing(c, x, r)) return {*nothing};
  return {reduce(x, r)};
}

/// ArgMax or ArgMin. With select_last_index, finds the first extremum of the reversed axis.
Value arg_extremum(const Context& c) {
  const bool maximum = c.op() == "ArgMax", last = c.bool_attr("select_last_index", false);
  const int64_t axis = c.int_attr("axis", 0);
  const bool keep = c.bool_attr("keepdims", true);
  Value x = c.input(0);
  const double end = last ? static_cast<double>(extent(c, x, axis) - 1) : 0;
  if (last) x = flip(x, {.axes = axis});
  const Value index = maximum ? argmax(x, {.axis = axis, .keep_dims = keep})
                              : argmin(x, {.axis = axis, .keep_dims = keep});
  return last ? end - index : index;
}

/// Before operator set 13, operators of the softmax family flatten the dimensions from `axis` on.
Value along_axis(const Context& c, const std::function<Value(Value x, int64_t axis)>& function) {
  const Value x = c.input(0);
  if (c.opset() >= 13) return function(x, c.int_attr("axis", -1));
  const Shape shape = x.shape();
  const int64_t axis = normalize_axis(c.int_attr("axis", 1), shape.rank());
  if (axis + 1 == shape.rank()) return function(x, axis);
  const Shape lead(shape.begin(), shape.begin() + axis), rest(shape.begin() + axis, shape.end());
  return reshape(function(reshape(x, {lead.numel(), rest.numel()}), 1), shape);
}

/// Returns 1 at the first maximum along `axis`, 0 elsewhere.
Value hard_maximum(Value x, int64_t axis) {
  const Value last = move_axis(x, axis, -1);
  return move_axis(one_hot(argmax(last), {.to = last.type()}), -1, axis);
}

template <class Attributes>
Value cumulative(const Context& c, Value (*function)(Value, const Attributes&, const Loc&)) {
  Attributes attrs;
  attrs.axis = c.constant(1).integer(0);
  attrs.exclusive = c.bool_attr("exclusive", false);
  attrs.reverse = c.bool_attr("reverse", false);
  return function(c.input(0), attrs, c.loc());
}

Operands largest(const Context& c) {
  const int64_t k = c.num_inputs() > 1 ? c.constant(1).integer(0) : c.int_attr("k", 0);
  const Values y = topk(c.input(0), {.k = k,
                                     .axis = c.int_attr("axis", -1),
                                     .largest = c.bool_attr("largest", true),
                                     .sorted = c.bool_attr("sorted", true)});
  return {y[0], y[1]};
}

}  // namespace

void add_reductions(Mappings& all) {
  for (const auto& [name, reduce] : kReductions) {
    all[name] = [reduce](const Context& c) { return reduced(c, reduce); };
  }
  all["ArgMax"] = all["ArgMin"] = [](const Context& c) { return Operands{arg_extremum(c)}; };
  all["Softmax"] = [](const Context& c) {
    return Operands{
        along_axis(c, [](Value x, int64_t axis) { return softmax(x, {.axis = axis}); })};
  };
  all["LogSoftmax"] = [](const Context& c) {
    return Operands{
        along_axis(c, [](Value x, int64_t axis) { return log_softmax(x, {.axis = axis}); })};
  };
  all["Hardmax"] = [](const Context& c) { return Operands{along_axis(c, hard_maximum)}; };
  all["CumSum"] = [](const Context& c) { return Operands{cumulative<CumsumAttrs>(c, cumsum)}; };
  all["CumProd"] = [](const Context& c) { return Operands{cumulative<CumprodAttrs>(c, cumprod)}; };
  all["TopK"] = largest;
}

}  // namespace fluid::onnx
