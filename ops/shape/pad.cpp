#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

int64_t entry(const Attrs& attrs, std::string_view name, size_t d) {
  const auto& list = attrs.get<std::vector<int64_t>>(name);
  return list.empty() ? 0 : list[d];
}

std::vector<Type> infer_pad(const InferCtx& c) {
  Type type = c.in(0);
  for (const std::string_view name : {"low", "high", "interior"}) {
    const auto& list = c.attr<std::vector<int64_t>>(name);
    c.require(list.empty() || list.size() == type.shape.size(),
              std::string(name) + " needs one entry per dimension of " + c.in(0).str());
    for (const int64_t n : list) {
      c.require(n >= 0, std::string(name) + " must not be negative");
      c.require(n <= INT32_MAX, std::string(name) + " must not be above 2147483647");
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
    if (!extent.batch) extent.size = padded;
  }
  return {type};
}

Values pad_grad(const GradCtx& c) {
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

std::vector<Expr> pad_body(const LowerCtx& c) {
  std::vector<Expr> index = c.out_vars();
  Expr between;  // condition that the index is in interior padding, between two elements of x
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
          "Pads x with `value`: `low` values before, `high` values after and `interior` values "
          "between the elements.",
      .inputs = {{"x", "numeric tensor"}},
      .attrs = {{"low", std::vector<int64_t>{}, "one number per dimension; empty: 0"},
                {"high", std::vector<int64_t>{}, "one number per dimension; empty: 0"},
                {"interior", std::vector<int64_t>{}, "one number per dimension; empty: 0"},
                {"value", 0.0, "padding value"}},
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
