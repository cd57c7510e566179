#include "ops/elementwise.h"
#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

std::vector<Type> infer_lookahead(const InferCtx& c) {
  const Type& slow = c.in(0);
  c.require(is_float(slow.dtype), "expects float weights, got " + slow.str());
  for (size_t i = 1; i < 3; ++i) {
    c.require(c.in(i) == slow, "operand " + std::to_string(i) + " must be of the slow weights' " +
                                   "type " + slow.str() + ", got " + c.in(i).str());
  }
  c.require(c.in(3) == Type{i64, {}, {}},
            "the update counter must be an i64 scalar, got " + c.in(3).str());
  c.require(c.attr<int64_t>("every") > 0,
            "attribute 'every' must be above 0, not " + std::to_string(c.attr<int64_t>("every")));
  require_in_range(c, "alpha", 0);
  return {slow, slow};
}

std::vector<Expr> lookahead_weights(const LowerCtx& c) {
  const Expr is_first = scalar::compare(ScalarOp::eq, c.in(3), Expr::index(0));
  const Expr slow = scalar::select(is_first, c.in(1), c.in(0)), fast = c.in(2);
  const Expr moved = slow + (fast - slow) * c.attr<double>("alpha");
  const Expr position =
      scalar::mod(c.in(3) + Expr::index(1), Expr::index(c.attr<int64_t>("every")));
  const Expr moves = scalar::compare(ScalarOp::eq, position, Expr::index(0));
  return {scalar::select(moves, moved, fast), scalar::select(moves, moved, slow)};
}

}  // namespace

OpDef lookahead_op() {
  return OpDef{
      .name = "lookahead",
      .doc =
          "Lookahead around an optimizer (Zhang et al., \"Lookahead optimizer: k steps forward, 1 "
          "step back\", 2019): after each `every` updates, slow = slow + alpha * (param - slow), "
          "and "
          "the parameter becomes slow. The first slow weights are the initial parameter.",
      .inputs = {{"slow", "float tensor: the slow weights"},
                 {"old_param", "same type: the parameter before the update"},
                 {"param", "same type: the parameter after the update"},
                 {"update", "i64 scalar: number of completed updates before this one"}},
      .attrs = {{"every", int64_t{5}, "number of updates between two of the slow weights"},
                {"alpha", 0.5, "step size of the slow weights"}},
      .outputs = {{"new_param", "same type as slow"}, {"new_slow", "same type as slow"}},
      .infer = infer_lookahead,
      .grad = NoGrad{},
      .effects = Updates{{{1, 0}}},
      .amp = {Amp::kF32},
      .cost = cost_per_element(4),
      .in_place = {{.out = 0, .in = 2}, {.out = 1, .in = 0}},
      .lower = Map{lookahead_weights},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
