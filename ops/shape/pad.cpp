#include <optional>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

int64_t entry(const Attrs& attrs, std::string_view name, size_t d) {
  const auto& list = attrs.get<std::vector<int64_t>>(name);
  return list.empty() ? 0 : list[d];
}

enum class Mode : uint8_t { constant, reflect, edge };

std::optional<Mode> mode_of(const Attrs& attrs) {
  const std::string& mode = attrs.get<std::string>("mode");
  if (mode == "constant") return Mode::constant;
  if (mode == "reflect") return Mode::reflect;
  if (mode == "edge") return Mode::edge;
  return std::nullopt;
}

/// Checks the padding of dimension `d` in modes reflect and edge, which copy elements of x.
void require_sources(const InferCtx& c, Mode mode, size_t d) {
  const int64_t extent = c.in(0).shape[d].size;
  const int64_t most = std::max(entry(c.attrs(), "low", d), entry(c.attrs(), "high", d));
  const std::string dimension = "dimension " + std::to_string(d) + " of " + c.in(0).str();
  c.require(entry(c.attrs(), "interior", d) == 0, "interior padding needs mode \"constant\"");
  if (mode == Mode::edge) {
    c.require(most == 0 || extent > 0, dimension + " has no elements to pad it with");
  } else {
    c.require(most == 0 || most < extent, "reflect padding " + std::to_string(most) +
                                              " is not below the extent of " + dimension);
  }
}

std::vector<Type> infer_pad(const InferCtx& c) {
  Type type = c.in(0);
  const std::optional<Mode> mode = mode_of(c.attrs());
  c.require(mode.has_value(), "mode must be \"constant\", \"reflect\" or \"edge\", not \"" +
                                  c.attr<std::string>("mode") + "\"");
  for (const std::string_view name : {"low", "high", "interior"}) {
    const auto& list = c.attr<std::vector<int64_t>>(name);
    c.require(list.empty() || list.size() == type.shape.size(),
              std::string(name) + " needs one entry per dimension of " + c.in(0).str() + ", not " +
                  c.attr_text(name));
    for (const int64_t n : list) {
      c.require(
          n >= 0 && n <= INT32_MAX,
          std::string(name) + " must lie between 0 and 2147483647, not be " + c.attr_text(name));
    }
  }
  require_representable(c, "value", type.dtype);
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const int64_t low = entry(c.attrs(), "low", d), high = entry(c.attrs(), "high", d);
    const int64_t interior = entry(c.attrs(), "interior", d);
    Dim& extent = type.shape[d];
    c.require(!extent.batch || (low == 0 && high == 0 && interior == 0),
              "the batch dimension of " + c.in(0).str() + " cannot be padded");
    int64_t padded = 0;
    c.require(!__builtin_mul_overflow(std::max(extent.size - 1, int64_t{0}), interior, &padded) &&
                  !__builtin_add_overflow(extent.size, padded, &padded) &&
                  !__builtin_add_overflow(padded, low + high, &padded),
              "dimension " + std::to_string(d) + " of " + c.in(0).str() + " grows too large");
    if (mode != Mode::constant) require_sources(c, *mode, d);
    if (!extent.batch) extent.size = padded;
  }
  return {type};
}

Values constant_pad_grad(const GradCtx& c) {
  Ints axes, starts, steps, stops;
  const Shape& shape = c.in(0).shape();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].batch) continue;
    const int64_t low = entry(c.attrs(), "low", d), step = entry(c.attrs(), "interior", d) + 1;
    axes.push_back(static_cast<int64_t>(d));
    starts.push_back(low);
    steps.push_back(step);
    stops.push_back(shape[d].size == 0 ? low : low + (shape[d].size - 1) * step + 1);
  }
  return {axes.empty()
              ? c.dout(0)
              : slice(c.dout(0), {.starts = starts, .stops = stops, .steps = steps, .axes = axes})};
}

/// Gradient of reflect or edge padding along dimension `d`. Adds the gradient of each padding value
/// to the gradient of the element that it copies.
Value repeated_pad_grad(Value dy, Mode mode, size_t d, int64_t low, int64_t high) {
  const auto axis = static_cast<int64_t>(d);
  const size_t rank = dy.shape().size();
  const int64_t extent = dy.shape()[d].size - low - high;
  const auto part = [&](int64_t begin, int64_t count) {
    return slice(dy, {.starts = begin, .stops = begin + count, .axes = axis});
  };
  // Returns `padding`, the gradients of `count` padding elements, as a tensor of the extent of x:
  // zeros, with `padding` at offset `begin`.
  const auto placed = [&](Value padding, int64_t begin, int64_t count) {
    Ints before(rank), after(rank);
    before[d] = begin;
    after[d] = extent - begin - count;
    return pad(padding, {.low = before, .high = after});
  };
  Value dx = part(low, extent);
  const auto add = [&](int64_t begin, int64_t count, int64_t edge, int64_t reflected) {
    if (count == 0) return;
    const Value padding = part(begin, count);
    dx = dx + (mode == Mode::edge ? placed(sum(padding, {.axes = axis, .keep_dims = true}), edge, 1)
                                  : placed(flip(padding, {.axes = axis}), reflected, count));
  };
  add(0, low, 0, 1);
  add(low + extent, high, extent - 1, extent - 1 - high);
  return dx;
}

Values pad_grad(const GradCtx& c) {
  const Mode mode = *mode_of(c.attrs());
  if (mode == Mode::constant) return constant_pad_grad(c);
  Value dx = c.dout(0);
  for (size_t d = 0; d < c.in(0).shape().size(); ++d) {
    const int64_t low = entry(c.attrs(), "low", d), high = entry(c.attrs(), "high", d);
    if (low + high > 0) dx = repeated_pad_grad(dx, mode, d, low, high);
  }
  return {dx};
}

/// Returns, along one dimension, the index in x of the element that is copied to output position
/// `position`. Positions count from x's first element; those outside [0, extent) are padding.
Expr repeated_index(Mode mode, const Expr& position, int64_t extent) {
  const Expr last = Expr::index(extent - 1), zero = Expr::index(0);
  if (mode == Mode::edge) return scalar::min(scalar::max(position, zero), last);
  const Expr distance = scalar::max(position, zero - position);
  return scalar::min(distance, last + last - distance);
}

std::vector<Expr> repeated_pad_body(const LowerCtx& c) {
  std::vector<Expr> index = c.out_vars();
  for (size_t d = 0; d < index.size(); ++d) {
    const int64_t low = entry(c.attrs(), "low", d), high = entry(c.attrs(), "high", d);
    if (low + high == 0) continue;
    index[d] = repeated_index(*mode_of(c.attrs()), index[d] - Expr::index(low),
                              c.in_type(0).shape[d].size);
  }
  return {c.read(0, index)};
}

std::vector<Expr> pad_body(const LowerCtx& c) {
  if (mode_of(c.attrs()) != Mode::constant) return repeated_pad_body(c);
  std::vector<Expr> index = c.out_vars();
  Expr between;  // whether the index lies in interior padding, between two elements of x
  for (size_t d = 0; d < index.size(); ++d) {
    index[d] = index[d] - Expr::index(entry(c.attrs(), "low", d));
    const Expr step = Expr::index(entry(c.attrs(), "interior", d) + 1);
    const Expr rest = scalar::mod(index[d], step);
    index[d] = scalar::floordiv(index[d], step);
    if (is_constant(rest, 0)) continue;
    const Expr off = scalar::compare(ScalarOp::ne, rest, Expr::index(0));
    between = between ? scalar::logical_or(between, off) : off;
  }
  const double value = c.attr<double>("value");
  const Expr element = c.read_or(0, index, value);
  if (!between) return {element};
  return {scalar::select(between, Expr::constant(element.dtype(), value), element)};
}

}  // namespace

OpDef pad_op() {
  return OpDef{
      .name = "pad",
      .doc =
          "Pads x: `low` values before, `high` values after and `interior` values between the "
          "elements. The values are `value`, the elements mirrored at the first and the last one "
          "(reflect), or the first and the last element (edge).",
      .inputs = {{"x", "numeric tensor"}},
      .attrs = {{"low", std::vector<int64_t>{}, "one number per dimension; empty: 0"},
                {"high", std::vector<int64_t>{}, "one number per dimension; empty: 0"},
                {"interior", std::vector<int64_t>{}, "one number per dimension; empty: 0"},
                {"value", 0.0, "padding value of mode \"constant\""},
                {"mode", std::string("constant"),
                 "\"constant\", \"reflect\" (padding below the extent) or \"edge\" (PyTorch's "
                 "replicate); the last two take no interior padding"}},
      .outputs = {{"y", "x's dtype and rank"}},
      .infer = infer_pad,
      .grad = GradFn(pad_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Map{pad_body},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
