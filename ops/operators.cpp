#include "ops/operators.h"

namespace fluid {
namespace {

// An operator has no place for a default argument, so its op has no location of its own; the
// recording state may give one.
const Loc kNowhere;

/// `shape` with an extent of -1 replaced by what `numel` leaves for it.
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
    }
  }
  if (open != nullptr) *open = numel;
  return shape;
}

}  // namespace

Value operator+(Value a, Value b) { return add(a, b, kNowhere); }
Value operator-(Value a, Value b) { return sub(a, b, kNowhere); }
Value operator*(Value a, Value b) { return mul(a, b, kNowhere); }
Value operator/(Value a, Value b) { return div(a, b, kNowhere); }
Value operator-(Value a) { return neg(a, kNowhere); }
Value operator+(Value a, double b) { return a + scalar_like(a, b, kNowhere); }
Value operator-(Value a, double b) { return a - scalar_like(a, b, kNowhere); }
Value operator*(Value a, double b) { return a * scalar_like(a, b, kNowhere); }
Value operator/(Value a, double b) { return a / scalar_like(a, b, kNowhere); }
Value operator+(double a, Value b) { return scalar_like(b, a, kNowhere) + b; }
Value operator-(double a, Value b) { return scalar_like(b, a, kNowhere) - b; }
Value operator*(double a, Value b) { return scalar_like(b, a, kNowhere) * b; }
Value operator/(double a, Value b) { return scalar_like(b, a, kNowhere) / b; }

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

}  // namespace fluid
