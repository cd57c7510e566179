#include "executor/device/library_task.h"

#include "ops/matched_forms.h"
#include "ops/quantization/quantization.h"
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

/// Returns the tensor that `op` combines with `before` by `scalar`, add or mul; nullopt if `op`
/// does not combine two different tensors so.
std::optional<Value> combined_with(const ir::Op& op, ScalarOp scalar, const Value& before) {
  if (op.operands.size() != 2 || op.operands[0] == op.operands[1]) return std::nullopt;
  const Lowered lowered = lower_op(op);
  const Expr& body = lowered.bodies[0];
  if (body.op() != scalar || !is_read_of(body.args()[0], 0) || !is_read_of(body.args()[1], 1)) {
    return std::nullopt;
  }
  return op.operands[op.operands[0] == before ? 1 : 0];
}

/// Whether `v` has one value per channel, broadcast over all other axes of `before`.
bool is_per_channel(const ir::Op& op, const Value& before, const Value& v, int channel_axis) {
  const Shape& y = before.shape();
  const Type& b = v.type();
  const auto axis = static_cast<size_t>(channel_axis);
  if (b.layout || op.results[0].type.shape != y || b.shape.size() < axis) return false;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    const bool channel = b.shape.size() - d == axis;
    if (!(channel ? b.shape[d] == y[y.size() - axis] : b.shape[d].is(1))) return false;
  }
  return b.dtype == before.dtype();
}

bool is_elementwise(const ir::Op& op) {
  return std::holds_alternative<Map>(*def_of(op).lower) && op.results.size() == 1;
}

/// Matches the ops after `op` against the supported epilogues (struct Epilogue). Returns nullopt if
/// the ops do not match.
std::optional<Epilogue> match(const ir::Op& op, const EpilogueOps& chain, int channel_axis,
                              int64_t batch, EpilogueSupport support) {
  const bool integers = support == EpilogueSupport::integers;
  const auto vector_of = [&](const Value& v) {
    const Type type = concrete(v.type(), batch);
    return Type{type.dtype, {type.shape.numel()}, {}};
  };
  Epilogue result;
  Value before = {const_cast<ir::Op*>(&op), 0};
  for (const ir::Op* next : chain) {
    if (result.addend || !is_elementwise(*next)) return std::nullopt;
    const std::optional<Value> added = combined_with(*next, ScalarOp::add, before);
    const std::optional<Value> factor = combined_with(*next, ScalarOp::mul, before);
    const auto per_channel = [&](const std::optional<Value>& v) {
      return v && is_per_channel(*next, before, *v, channel_axis);
    };
    if (integers && next == chain.back() && is_round_saturate(*next)) return result;
    if (result.relu) return std::nullopt;
    if (is_relu(*next)) {
      result.relu = true;
    } else if (!result.bias && per_channel(added)) {
      result.bias = vector_of(*added);
    } else if (integers && next == chain.front() && per_channel(factor)) {
      result.scale = vector_of(*factor);
    } else if (support == EpilogueSupport::addend && added && next == chain.front() &&
               added->type() == before.type()) {
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
                                        int64_t batch, int channel_axis, EpilogueSupport support) {
  const auto matched = match(op, epilogue, channel_axis, batch, support);
  if (!matched) return std::nullopt;
  const ir::Op& last = epilogue.empty() ? op : *epilogue.back();
  LibraryTask task{op, {}, concrete(last.results[0].type, batch), *matched};
  for (const Value& v : op.operands) task.operands.push_back(concrete(v.type(), batch));
  const bool integers = support == EpilogueSupport::integers;
  if (integers && task.result.dtype != DType::f32 && !is_8bit_integer(task.result.dtype))
    return std::nullopt;
  const auto usable = [&](const Type& t) {
    const bool fits =
        integers && &t != &task.result ? is_8bit_integer(t.dtype) : t.dtype == task.result.dtype;
    return fits && t.shape.numel().size > 0;
  };
  if (!usable(task.result) || !std::ranges::all_of(task.operands, usable)) return std::nullopt;
  return task;
}

}  // namespace fluid
