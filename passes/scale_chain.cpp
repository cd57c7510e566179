#include "passes/scale_chain.h"

#include "ops/operators.h"
#include "ops/table.h"

namespace fluid {

std::optional<ScaleOrShift> scale_or_shift(const ir::Op& op, const ir::Op& before,
                                           const std::map<const ir::Op*, bool>& weights) {
  if (!std::holds_alternative<Map>(*def_of(op).lower) || op.operands.size() != 2) return {};
  const Lowered lowered = lower_op(op);
  const Expr& body = lowered.bodies.at(0);
  const size_t weight = op.operands[0].op() == &before ? 1 : 0;
  const bool known = body.op() == ScalarOp::add || body.op() == ScalarOp::mul ||
                     (body.op() == ScalarOp::sub && weight == 1);
  if (!known || !weights.contains(op.operands[weight].op())) return {};
  for (size_t i = 0; i < 2; ++i) {
    const Expr& read = body.args()[i];
    if (read.op() != ScalarOp::read || read.node().ivalue != static_cast<int64_t>(i)) return {};
  }
  return ScaleOrShift{&op, body.op(), weight};
}

std::map<size_t, Dim> broadcast_dims(const Shape& shape, size_t rank) {
  std::map<size_t, Dim> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!shape[d].is(1)) dims[d + rank - shape.size()] = shape[d];
  }
  return dims;
}

bool varies_along(const ScaleOrShift& link, size_t dim) {
  const auto dims =
      broadcast_dims(link.op->operands[link.weight].shape(), link.op->results[0].type.shape.size());
  return dims.empty() || (dims.size() == 1 && dims.contains(dim));
}

void ScaleAndShift::append(const ScaleOrShift& link) {
  const Value w = link.op->operands[link.weight];
  switch (link.scalar) {
    case ScalarOp::add:
      shift = shift ? shift + w : w;
      break;
    case ScalarOp::sub:
      shift = shift ? shift - w : -w;
      break;
    default:
      scale = scale ? scale * w : w;
      if (shift) shift = shift * w;
  }
}

}  // namespace fluid
