#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_concat(const InferCtx& c) {
  require_same_dtype(c);
  Type joined = c.in(0);
  const auto axis =
      static_cast<size_t>(normalized_axis(c, c.attr<int64_t>("axis"), joined.shape.size()));
  for (size_t i = 0; i < c.arity(); ++i) {
    Shape shape = c.in(i).shape;
    c.require(axis < shape.size() && !shape[axis].batch,
              "cannot join " + c.in(i).str() + " along axis " + std::to_string(axis));
    if (i > 0) {
      c.require(!__builtin_add_overflow(joined.shape[axis].size, shape[axis].size,
                                        &joined.shape[axis].size),
                "the joined extents overflow a 64-bit integer");
    }
    shape[axis] = joined.shape[axis];
    c.require(shape == joined.shape, "operands " + c.in(0).str() + " and " + c.in(i).str() +
                                         " differ besides axis " + std::to_string(axis));
  }
  return {joined};
}

size_t axis_of(const Attrs& attrs, const Shape& shape) {
  const int64_t axis = attrs.get<int64_t>("axis");
  return static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis);
}

Values concat_grad(const GradCtx& c) {
  const size_t axis = axis_of(c.attrs(), c.in(0).shape());
  Values grads;
  int64_t begin = 0;
  for (size_t i = 0; i < c.arity(); ++i) {
    const int64_t end = begin + c.in(i).shape()[axis].size;
    grads.push_back(
        slice(c.dout(0), {.starts = begin, .stops = end, .axes = static_cast<int64_t>(axis)}));
    begin = end;
  }
  return grads;
}

std::vector<Expr> concat_body(const LowerCtx& c) {
  const size_t axis = axis_of(c.attrs(), c.out_type().shape);
  const Expr at = c.out_var(axis);
  int64_t begin = c.out_type().shape[axis].size;
  Expr body;
  for (size_t i = c.arity(); i-- > 0;) {
    const Expr end = Expr::index(begin);
    begin -= c.in_type(i).shape[axis].size;
    std::vector<Expr> index = c.out_vars();
    index[axis] = at - Expr::index(begin);
    const Expr element = c.read_or(i, index, 0);
    body = body ? scalar::select(scalar::compare(ScalarOp::lt, at, end), element, body) : element;
  }
  return {body};
}

}  // namespace

OpDef concat_op() {
  return OpDef{
      .name = "concat",
      .doc = "Concatenates the operands along `axis`.",
      .inputs = {{"xs", "tensors of one dtype, with equal extents except along `axis`", true}},
      .attrs = {{"axis", int64_t{0},
                 "axis to concatenate, not the batch dimension; negative: counted from the end"}},
      .outputs = {{"y", "dtype of the operands"}},
      .infer = infer_concat,
      .grad = GradFn(concat_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {{0, 0}},
      .lower = Map{concat_body},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
