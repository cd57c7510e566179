#include "executor/cpu/library_task.h"

#include "ops/table.h"

namespace fluid {
namespace {

Type concrete(Type type, int64_t batch) {
  type.shape = type.shape.at(batch);
  return type;
}

bool is_read_of(const Expr& e, int64_t operand) {
  return e.op() == Scalar::read && e.node().ivalue == operand;
}

/// Whether `op` adds, to `before`, one number a channel; `bias` is then that operand.
bool adds_bias(const ir::Op& op, const Value& before, int channel_axis, size_t& bias) {
  if (op.operands.size() != 2) return false;
  const Lowered lowered = lower_op(op);
  const Expr& body = lowered.bodies[0];
  if (body.op() != Scalar::add || !is_read_of(body.args()[0], 0) ||
      !is_read_of(body.args()[1], 1)) {
    return false;
  }
  bias = op.operands[0] == before ? 1 : 0;
  const Shape& y = before.shape();
  const Type& b = op.operands[bias].type();
  const auto axis = static_cast<size_t>(channel_axis);
  if (b.layout || op.results[0].type.shape != y || b.shape.size() < axis) return false;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    const bool channel = b.shape.size() - d == axis;
    if (!(channel ? b.shape[d] == y[y.size() - axis] : b.shape[d].is(1))) return false;
  }
  return b.dtype == before.dtype();
}

bool is_relu(const ir::Op& op) {
  if (op.operands.size() != 1 || op.results.size() != 1) return false;
  const Lowered lowered = lower_op(op);
  const Expr& body = lowered.bodies[0];
  return body.op() == Scalar::max && is_read_of(body.args()[0], 0) &&
         is_constant(body.args()[1], 0);
}

bool is_elementwise(const ir::Op& op) {
  return std::holds_alternative<Map>(*def_of(op).lower) && op.results.size() == 1;
}

/// Empty when the chain is more than a bias and a relu.
std::optional<Epilogue> match(const ir::Op& op, const Chain& chain, int channel_axis,
                              int64_t batch) {
  Epilogue result;
  Value before = {const_cast<ir::Op*>(&op), 0};
  for (const ir::Op* next : chain) {
    if (result.relu || !is_elementwise(*next)) return std::nullopt;
    size_t bias = 0;
    if (is_relu(*next)) {
      result.relu = true;
    } else if (!result.bias && adds_bias(*next, before, channel_axis, bias)) {
      const Type type = concrete(next->operands[bias].type(), batch);
      result.bias = Type{type.dtype, {type.shape.numel()}, {}};
    } else {
      return std::nullopt;
    }
    before = {const_cast<ir::Op*>(next), 0};
  }
  return result;
}

}  // namespace

std::optional<LibraryTask> library_task(const ir::Op& op, const Chain& epilogue, int64_t batch,
                                        int channel_axis) {
  const auto matched = match(op, epilogue, channel_axis, batch);
  if (!matched) return std::nullopt;
  const ir::Op& last = epilogue.empty() ? op : *epilogue.back();
  LibraryTask task{op, {}, concrete(last.results[0].type, batch), *matched};
  for (const Value& v : op.operands) task.operands.push_back(concrete(v.type(), batch));
  const auto usable = [&](const Type& t) {
    return t.dtype == task.result.dtype && t.shape.numel().size > 0;
  };
  if (!usable(task.result) || !std::ranges::all_of(task.operands, usable)) return std::nullopt;
  return task;
}

}  // namespace fluid
