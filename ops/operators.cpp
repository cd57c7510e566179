#include "ops/operators.h"

#include <algorithm>

namespace fluid {
namespace {

Value number_like(const LocatedValue& like, double value) {
  return scalar_like(like.value, value, like.loc);
}

/// Returns `shape` with an extent of -1 replaced by the extent that gives `numel` elements.
Shape resolved(Shape shape, Dim numel, const Loc& loc) {
  Dim* open = nullptr;
  for (Dim& d : shape) {
    if (d.size < -1 || (d.is(-1) && open != nullptr)) {
      throw UserError(loc, "reshape: extents are 0 or more, and at most one is -1");
    }
    if (d.is(-1)) {
      open = &d;
    } else if (d.size > 0 && numel.size % d.size == 0) {
      numel.size /= d.size;
      numel.batch = numel.batch && !d.batch;
      numel.length_power -= std::min(numel.length_power, d.length_power);
    }
  }
  if (open != nullptr) *open = numel;
  return shape;
}

}  // namespace

Value operator+(LocatedValue a, Value b) { return add(a.value, b, a.loc); }
Value operator-(LocatedValue a, Value b) { return sub(a.value, b, a.loc); }
Value operator*(LocatedValue a, Value b) { return mul(a.value, b, a.loc); }
Value operator/(LocatedValue a, Value b) { return div(a.value, b, a.loc); }
Value operator-(LocatedValue a) { return neg(a.value, a.loc); }
Value operator+(LocatedValue a, double b) { return add(a.value, number_like(a, b), a.loc); }
Value operator-(LocatedValue a, double b) { return sub(a.value, number_like(a, b), a.loc); }
Value operator*(LocatedValue a, double b) { return mul(a.value, number_like(a, b), a.loc); }
Value operator/(LocatedValue a, double b) { return div(a.value, number_like(a, b), a.loc); }
Value operator+(double a, LocatedValue b) { return add(number_like(b, a), b.value, b.loc); }
Value operator-(double a, LocatedValue b) { return sub(number_like(b, a), b.value, b.loc); }
Value operator*(double a, LocatedValue b) { return mul(number_like(b, a), b.value, b.loc); }
Value operator/(double a, LocatedValue b) { return div(number_like(b, a), b.value, b.loc); }

Value scalar_like(Value like, double value, const Loc& loc) {
  ir::Graph& graph = graph_of({like}, "fill", loc);
  return fill(graph, {.type = Type{like.dtype(), {}, {}}, .value = value}, loc);
}

Value cast(Value x, DType dtype, const Loc& loc) {
  if (x && x.dtype() == dtype) return x;
  return cast(x, CastAttrs{.to = Type{dtype, {}, {}}}, loc);
}

Value reshape(Value x, const Shape& shape, const Loc& loc) {
  graph_of({x}, "reshape", loc);
  const Shape to = resolved(shape, x.shape().numel(), loc);
  if (x.shape() == to) return x;
  return reshape(x, ReshapeAttrs{.to = Type{x.dtype(), to, {}}}, loc);
}

Value broadcast_to(Value x, const Shape& shape, const Loc& loc) {
  graph_of({x}, "broadcast_to", loc);
  if (x.shape() == shape) return x;
  return broadcast_to(x, BroadcastToAttrs{.to = Type{x.dtype(), shape, {}}}, loc);
}

Value global_avg_pool2d(Value x, const Loc& loc) {
  return adaptive_avg_pool2d(x, {.output = 1}, loc);
}

Value global_max_pool2d(Value x, const Loc& loc) {
  return adaptive_max_pool2d(x, {.output = 1}, loc);
}

}  // namespace fluid
