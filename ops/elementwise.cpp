#include "ops/elementwise.h"

#include <cmath>

#include "ir/text.h"
#include "ops/operators.h"

namespace fluid {
namespace {

void require_dtype(const InferCtx& c, size_t i, bool holds, const std::string& wanted) {
  if (holds) return;
  c.fail((c.arity() == 1 ? "the operand" : "operand " + std::to_string(i)) + " must be a " +
         wanted + " tensor, not " + c.in(i).str());
}

std::string all_types(const InferCtx& c) {
  std::string s;
  for (size_t i = 0; i < c.arity(); ++i) {
    s += (i == 0 ? "" : i + 1 == c.arity() ? " and " : ", ") + c.in(i).str();
  }
  return s;
}

}  // namespace

void require_float(const InferCtx& c, size_t i) {
  require_dtype(c, i, is_float(c.in(i).dtype), "float");
}

void require_numeric(const InferCtx& c, size_t i) {
  require_dtype(c, i, c.in(i).dtype != DType::boolean, "numeric");
}

void require_bool(const InferCtx& c, size_t i) {
  require_dtype(c, i, c.in(i).dtype == DType::boolean, "bool");
}

void require_same_dtype(const InferCtx& c, size_t first) {
  for (size_t i = first + 1; i < c.arity(); ++i) {
    c.require(c.in(i).dtype == c.in(first).dtype,
              "operands of different dtypes, " + all_types(c) + ": cast one of them");
  }
}

bool is_representable(double value, DType dtype) {
  if (is_float(dtype)) return true;
  const double range = std::ldexp(1.0, static_cast<int>(8 * size_of(dtype)) - 1);
  const double low = is_signed_integer(dtype) ? -range : 0;
  const double end = dtype == DType::boolean ? 2 : low < 0 ? range : 2 * range;
  return value >= low && value < end && value == std::floor(value);
}

void require_representable(const InferCtx& c, std::string_view name, DType dtype) {
  const double value = c.attr<double>(name);
  c.require(is_representable(value, dtype),
            "attribute '" + std::string(name) + "' is not representable in " +
                std::string(name_of(dtype)) + ": " + ir::float_text(value));
}

void require_finite(const InferCtx& c, std::string_view name) {
  const double value = c.attr<double>(name);
  c.require(std::isfinite(value),
            "attribute '" + std::string(name) + "' must be finite, not " + ir::float_text(value));
}

void require_not_nan(const InferCtx& c, std::string_view name) {
  c.require(!std::isnan(c.attr<double>(name)),
            "attribute '" + std::string(name) + "' must not be nan");
}

Shape broadcast_shape(const InferCtx& c) {
  size_t rank = 0;
  for (const Type& t : c.ins()) rank = std::max(rank, t.shape.size());
  Shape shape(rank, Dim(1));
  for (const Type& t : c.ins()) {
    const size_t skip = rank - t.shape.size();
    for (size_t d = 0; d < t.shape.size(); ++d) {
      Dim& to = shape[skip + d];
      if (to.is(1)) to = t.shape[d];
      c.require(t.shape[d].is(1) || t.shape[d] == to,
                "cannot broadcast " + all_types(c) + ": dimension " + std::to_string(skip + d) +
                    " is both " + to.str() + " and " + t.shape[d].str());
    }
  }
  return shape;
}

std::vector<Type> infer_float_unary(const InferCtx& c) {
  require_float(c, 0);
  return {c.in(0)};
}

std::vector<Type> infer_numeric_unary(const InferCtx& c) {
  require_numeric(c, 0);
  return {c.in(0)};
}

std::vector<Type> infer_numeric_broadcast(const InferCtx& c) {
  for (size_t i = 0; i < c.arity(); ++i) require_numeric(c, i);
  require_same_dtype(c);
  return {{c.in(0).dtype, broadcast_shape(c)}};
}

std::vector<Type> infer_float_broadcast(const InferCtx& c) {
  for (size_t i = 0; i < c.arity(); ++i) require_float(c, i);
  return infer_numeric_broadcast(c);
}

std::vector<Type> infer_float_predicate(const InferCtx& c) {
  require_float(c, 0);
  return {{DType::boolean, c.in(0).shape}};
}

std::vector<Type> infer_logical(const InferCtx& c) {
  for (size_t i = 0; i < c.arity(); ++i) require_bool(c, i);
  return {{DType::boolean, broadcast_shape(c)}};
}

Map map_unary(std::function<Expr(const Expr&)> body) {
  return Map{[body = std::move(body)](const LowerCtx& c) { return std::vector{body(c.in(0))}; }};
}

Map map_unary(ScalarOp function) {
  return map_unary([function](const Expr& x) { return scalar::unary(function, x); });
}

Map map_binary(std::function<Expr(const Expr&, const Expr&)> body) {
  return Map{
      [body = std::move(body)](const LowerCtx& c) { return std::vector{body(c.in(0), c.in(1))}; }};
}

OpDef comparison_def(std::string name, std::string doc, ScalarOp compare) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {{"a", "any tensor"}, {"b", "same dtype as a; shape broadcasts with a's"}},
      .attrs = {},
      .outputs = {{"y", "bool, the broadcast shape"}},
      .infer =
          [](const InferCtx& c) {
            require_same_dtype(c);
            return std::vector{Type{DType::boolean, broadcast_shape(c), {}}};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary(
          [compare](const Expr& a, const Expr& b) { return scalar::compare(compare, a, b); }),
      .kernels = {},
      .version = 1,
  };
}

OpDef logical_binary_def(std::string name, std::string doc,
                         Expr (*function)(const Expr&, const Expr&)) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {{"a", "bool tensor"}, {"b", "same dtype as a; shape broadcasts with a's"}},
      .attrs = {},
      .outputs = {{"y", "the broadcast shape"}},
      .infer = infer_logical,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary(function),
      .kernels = {},
      .version = 1,
  };
}

OpDef elementwise_extremum_def(std::string name, std::string doc, ScalarOp op) {
  const bool largest = op == ScalarOp::max;
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {{"a", "numeric tensor"}, {"b", "same dtype as a; shape broadcasts with a's"}},
      .attrs = {},
      .outputs = {{"y", "the broadcast shape"}},
      .infer = infer_numeric_broadcast,
      .grad = GradFn([largest](const GradCtx& c) {
        const Value a = c.in(0), b = c.in(1), dy = c.dout(0), zero = scalar_like(dy, 0);
        // If a or b is NaN, both gradients are dy, as in PyTorch.
        const Value shared = where(equal(a, b), dy * 0.5, dy);
        const auto gradient = [&](bool none_where_less) {
          return where(none_where_less ? less(a, b) : greater(a, b), zero, shared);
        };
        return Values{sum_to(gradient(largest), a.shape()), sum_to(gradient(!largest), b.shape())};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary(largest ? scalar::max : scalar::min),
      .kernels = {},
      .version = 1,
  };
}

std::function<Cost(const CostCtx&)> cost_per_element(double flops) {
  return [flops](const CostCtx& c) { return Cost{.flops = flops * c.numel_out()}; };
}

Value sign_of(Value x) {
  const Value zero = scalar_like(x, 0);
  const Value not_positive = where(less(x, zero), scalar_like(x, -1), zero);
  return where(greater(x, zero), scalar_like(x, 1), not_positive);
}

Value sum_to(Value x, const Shape& target) {
  const Shape from = x.shape();
  if (from == target) return x;
  const size_t added = from.size() - target.size();
  Ints axes;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool summed = d < added || (target[d - added].is(1) && !from[d].is(1));
    if (summed) axes.push_back(static_cast<int64_t>(d));
  }
  const Value total = axes.empty() ? x : sum(x, {.axes = axes});
  return reshape(total, target);
}

}  // namespace fluid
