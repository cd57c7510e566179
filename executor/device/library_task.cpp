#include "executor/device/library_task.h"

#include "ops/table.h"

namespace fluid {
namespace {

Type concrete(Type type, int64_t batch) {
  type.shape = type.shape.at(batch);
  return type;
}

bool is_read_of(const Expr& e, int64_t operand) {
  return e.op() == ScalarOp::read && e.node().ivalue == operand;
}

/// Returns the tensor that `op` adds to `before`; nullopt if `op` is not an addition of two
/// different tensors.
std::optional<Value> added_to(const ir::Op& op, const Value& before) {
  if (op.operands.size() != 2 || op.operands[0] == op.operands[1]) return std::nullopt;
  const Lowered lowered = lower_op(op);
  const Expr& body = lowered.bodies[0];
  if (body.op() != ScalarOp::add || !is_read_of(body.args()[0], 0) ||
      !is_read_of(body.args()[1], 1)) {
    return std::nullopt;
  }
  return op.operands[op.operands[0] == before ? 1 : 0];
}

/// Whether `added` is a bias: one value per channel, broadcast over all other axes of `before`.
bool is_bias(const ir::Op& op, const Value& before, const Value& added, int channel_axis) {
  const Shape& y = before.shape();
  const Type& b = added.type();
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
  return body.op() == ScalarOp::max && is_read_of(body.args()[0], 0) &&
         is_constant(body.args()[1], 0);
}

bool is_elementwise(const ir::Op& op) {
  return std::holds_alternative<Map>(*def_of(op).lower) && op.results.size() == 1;
}

/// Matches the ops after `op` against the supported epilogues: a bias and a relu, or one addend of
/// the result's type. Returns nullopt if the ops do not match.
std::optional<Epilogue> match(const ir::Op& op, const EpilogueOps& chain, int channel_axis,
                              int64_t batch) {
  Epilogue result;
  Value before = {const_cast<ir::Op*>(&op), 0};
  for (const ir::Op* next : chain) {
    if (result.relu || result.addend || !is_elementwise(*next)) return std::nullopt;
    const std::optional<Value> added = added_to(*next, before);
    if (is_relu(*next)) {
      result.relu = true;
    } else if (added && !result.bias && is_bias(*next, before, *added, channel_axis)) {
      const Type type = concrete(added->type(), batch);
      result.bias = Type{type.dtype, {type.shape.numel()}, {}};
    } else if (added && next == chain.front() && added->type() == before.type()) {
      result.addend = true;
    } else {
      return std::nullopt;
    }
    before = {const_cast<ir::Op*>(next), 0};
  }
  return result;
}

}  // namespace

LibraryBody::LibraryBody(const ir::Op& fused) {
  const ir::Graph* body = fused.graph()->program().find(fused.attrs.get<GraphRef>("body").name);
  check(body != nullptr, "fused op without its body");
  const ir::Op* before = nullptr;
  for (const auto& op : body->ops) {
    if (std::holds_alternative<Source>(*def_of(*op).lower)) continue;
    for (const Value& v : op->operands) {
      if (before != nullptr && v.op() == before) continue;
      buffers.push_back(static_cast<size_t>(v.op()->attrs.get<int64_t>("index")));
    }
    before = op.get();
    if (head == nullptr) {
      head = before;
    } else {
      epilogue.push_back(before);
    }
  }
  check(head != nullptr, "fused op without an op");
}

std::optional<LibraryTask> library_task(const ir::Op& op, const EpilogueOps& epilogue,
                                        int64_t batch, int channel_axis, bool supports_addend) {
  const auto matched = match(op, epilogue, channel_axis, batch);
  if (!matched || (matched->addend && !supports_addend)) return std::nullopt;
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
