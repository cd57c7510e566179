#include "ops/reduction.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Gradient of a maximum or minimum: the elements of x that equal the result share dy evenly, as in
/// PyTorch. The test for equality is exact even if x is recomputed, because all kernels round a
/// value in the same way (ops/contract.h). tests/e2e/shared_values_test.cpp checks this.
Values extremum_grad(const GradCtx& c) {
  const Value x = c.in(0), zero = scalar_like(x, 0);
  const SumAttrs along{.axes = c.attr<std::vector<int64_t>>("axes"), .keep_dims = true};
  const Value y = unsqueeze_axes(c.out(0), x.shape(), c.attrs());
  const Value hit = equal(x, y);
  const Value hits = sum(where(hit, scalar_like(x, 1), zero), along);
  const Value missed = where(equal(y, y), zero, y);  // where y is NaN, the gradients are NaN
  return {where(hit, unsqueeze_axes(c.dout(0), x.shape(), c.attrs()) / hits, missed)};
}

std::vector<Type> infer_arg_extremum(const InferCtx& c) {
  require_numeric(c, 0);
  const Shape& shape = c.in(0).shape;
  const int64_t axis = normalized_axis(c, c.attr<int64_t>("axis"), shape.size());
  c.require(shape[static_cast<size_t>(axis)].size != 0,
            "no elements along axis " + std::to_string(axis) + " of " + c.in(0).str());
  return {{DType::i64, reduced_shape(shape, axis, c.attr<bool>("keep_dims"))}};
}

/// Type inference of the reductions `any` and `all` of bool tensors.
std::vector<Type> infer_logical_reduction(const InferCtx& c) {
  require_bool(c, 0);
  const Shape& shape = c.in(0).shape;
  const Ints axes = normalized_axes(c, c.attr<std::vector<int64_t>>("axes"), shape.size());
  return {{DType::boolean, reduced_shape(shape, axes, c.attr<bool>("keep_dims"))}};
}

}  // namespace

int64_t normalized_axis(const InferCtx& c, int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  c.require(axis >= -n && axis < n, "axis " + std::to_string(axis) + " is out of range for " +
                                        c.in(0).str() + " of rank " + std::to_string(n));
  return axis < 0 ? axis + n : axis;
}

Ints normalized_axes(const Ints& axes, size_t rank) {
  Ints normal;
  for (const int64_t a : axes) normal.push_back(a < 0 ? a + static_cast<int64_t>(rank) : a);
  for (size_t d = 0; axes.empty() && d < rank; ++d) normal.push_back(static_cast<int64_t>(d));
  std::sort(normal.begin(), normal.end());
  return normal;
}

Ints normalized_axes(const InferCtx& c, const Ints& axes, size_t rank) {
  for (const int64_t a : axes) normalized_axis(c, a, rank);
  Ints normal = normalized_axes(axes, rank);
  const auto twice = std::ranges::adjacent_find(normal);
  if (twice != normal.end()) c.fail("axis " + std::to_string(*twice) + " is given twice");
  return normal;
}

std::vector<AttrDef> reduction_attrs() {
  return {{"axes", std::vector<int64_t>{},
           "axes to reduce; negative: counted from the end; empty: all"},
          {"keep_dims", false, "keeps the reduced axes with extent 1"}};
}

Shape reduced_shape(const Shape& shape, const Ints& axes, bool keep_dims) {
  Shape reduced;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool gone = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d));
    if (!gone) reduced.push_back(shape[d]);
    if (gone && keep_dims) reduced.emplace_back(1);
  }
  return reduced;
}

std::vector<Type> infer_reduction(const InferCtx& c) {
  require_numeric(c, 0);
  const Shape& shape = c.in(0).shape;
  const Ints axes = normalized_axes(c, c.attr<std::vector<int64_t>>("axes"), shape.size());
  return {{c.in(0).dtype, reduced_shape(shape, axes, c.attr<bool>("keep_dims"))}};
}

std::vector<Type> infer_arithmetic_reduction(std::string_view op, const InferCtx& c) {
  std::vector<Type> in = c.ins();
  if (in[0].dtype == boolean) in[0].dtype = i64;
  return infer_reduction(InferCtx(op, in, c.attrs(), c.loc()));
}

std::vector<Type> infer_extremum(const InferCtx& c) {
  const Shape& shape = c.in(0).shape;
  for (const int64_t axis :
       normalized_axes(c, c.attr<std::vector<int64_t>>("axes"), shape.size())) {
    c.require(shape[static_cast<size_t>(axis)].size != 0,
              "no elements along axis " + std::to_string(axis) + " of " + c.in(0).str());
  }
  return infer_reduction(c);
}

Reduce reduce_along(Combine combine, std::function<Expr(const Expr&)> body) {
  return Reduce{combine, [body = std::move(body)](const LowerCtx& c) {
                  const Shape& shape = c.in_type(0).shape;
                  const Ints axes =
                      normalized_axes(c.attr<std::vector<int64_t>>("axes"), shape.size());
                  ReduceBody result;
                  std::vector<Expr> index;
                  size_t kept = 0;
                  for (size_t d = 0; d < shape.size(); ++d) {
                    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d))) {
                      index.push_back(c.out_var(kept++));
                      continue;
                    }
                    index.push_back(c.reduce_var(result.extents.size()));
                    result.extents.push_back(shape[d]);
                    kept += c.attr<bool>("keep_dims") ? 1 : 0;
                  }
                  result.body = body(c.read(0, index));
                  return result;
                }};
}

Reduce arithmetic_reduction(Combine combine) {
  return reduce_along(
      combine, [](const Expr& x) { return x.dtype() == boolean ? scalar::cast(x, i64) : x; });
}

OpDef reduction_extremum_def(std::string name, std::string doc, Combine combine) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {{"x", "numeric tensor, not empty along `axes`"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_extremum,
      .grad = GradFn(extremum_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = reduce_along(combine, [](const Expr& x) { return x; }),
      .kernels = {},
      .version = 1,
  };
}

OpDef arg_extremum_def(std::string name, std::string doc, std::function<Value(Value x)> key) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {{"x", "numeric tensor, not empty along `axis`"}},
      .attrs = {{"axis", int64_t{-1}, "axis to reduce; negative: counted from the end"},
                {"keep_dims", false, "keeps the reduced axis with extent 1"}},
      .outputs = {{"index", "i64"}},
      .infer = infer_arg_extremum,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[key = std::move(key)](const ExpandCtx& c) {
        const MaxIndexAttrs attrs{.axes = c.attr<int64_t>("axis"),
                                  .keep_dims = c.attr<bool>("keep_dims")};
        return Values{max_index(key(c.in(0)), attrs)[1]};
      }},
      .kernels = {},
      .version = 1,
  };
}

OpDef logical_reduction_def(std::string name, std::string doc,
                            std::function<Value(Value x, const SumAttrs& along)> lowered) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {{"x", "bool tensor"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "bool"}},
      .infer = infer_logical_reduction,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[lowered = std::move(lowered)](const ExpandCtx& c) {
        return Values{lowered(c.in(0), {.axes = c.attr<std::vector<int64_t>>("axes"),
                                        .keep_dims = c.attr<bool>("keep_dims")})};
      }},
      .kernels = {},
      .version = 1,
  };
}

Value unsqueeze_axes(Value y, const Shape& from, const Attrs& attrs) {
  const Ints axes = normalized_axes(attrs.get<std::vector<int64_t>>("axes"), from.size());
  return reshape(y, reduced_shape(from, axes, true));
}

}  // namespace fluid
