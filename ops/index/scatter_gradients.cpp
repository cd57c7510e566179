#include "ops/elementwise.h"
#include "ops/index/scatter.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Gradients of a scatter with reduction "min" or "max". The gradient of a result element is
/// divided evenly among the elements of x and updates that equal it.
Values extremum_gradients(const GradCtx& c, const ScatterFunctions& f) {
  const Value x = c.in(0), updates = c.in(2), y = c.out(0);
  const Value one = scalar_like(x, 1), zero = scalar_like(x, 0);
  const Value x_hit = where(equal(x, y), one, zero);
  const Value update_hit = where(equal(updates, f.gather(y)), one, zero);
  const Value share = c.dout(0) / f.scatter(x_hit, update_hit, "add");
  return {x_hit * share, {}, update_hit * f.gather(share)};
}

/// Gradients of a scatter with reduction "mul". The gradient of a factor is dy times the product of
/// the other factors, so it is 0 if another factor is 0. `others`: dy times the product of the
/// nonzero factors. `zeros`: number of zero factors.
Values product_gradients(const GradCtx& c, const ScatterFunctions& f) {
  const Value x = c.in(0), updates = c.in(2), dy = c.dout(0);
  const Value one = scalar_like(x, 1), zero = scalar_like(x, 0);
  const auto zeros_in = [&](Value v) { return where(equal(v, zero), one, zero); };
  const auto nonzero = [&](Value v) { return where(equal(v, zero), one, v); };
  const Value others = dy * f.scatter(nonzero(x), nonzero(updates), "mul");
  const Value zeros = f.scatter(zeros_in(x), zeros_in(updates), "add");
  const auto gradient = [&](Value v, Value others_of_v, Value zeros_of_v) {
    return where(equal(zeros_of_v, zeros_in(v)), others_of_v / nonzero(v), zero);
  };
  return {gradient(x, others, zeros), {}, gradient(updates, f.gather(others), f.gather(zeros))};
}

}  // namespace

AttrDef scatter_reduce_attr() {
  return {"reduce", std::string("none"),
          R"("none": the last update of an element counts, and gradients require distinct )"
          R"(indices; "add", "mul", "max", "min")"};
}

void require_scatter_reduction(const InferCtx& c) {
  const std::string& reduce = c.attr<std::string>("reduce");
  c.require(is_scatter_reduction(reduce),
            R"(reduce must be "none", "add", "mul", "max" or "min", not ")" + reduce + "\"");
}

Values scatter_gradients(const GradCtx& c, const ScatterFunctions& f) {
  const auto zeros = [&](Value like) {
    return fill(*c.op().graph(), {.type = like.type()}, c.op().loc);
  };
  // There is no element that f.gather() could read.
  if (c.in(0).shape().numel().size == 0) return {c.dout(0), {}, zeros(c.in(2))};
  const std::string& reduce = c.attr<std::string>("reduce");
  if (reduce == "max" || reduce == "min") return extremum_gradients(c, f);
  if (reduce == "mul") return product_gradients(c, f);
  const Value dy = c.dout(0), updates = f.gather(dy);
  if (reduce == "add") return {dy, {}, updates};
  return {f.scatter(dy, zeros(updates), "none"), {}, updates};
}

}  // namespace fluid
