#include "ops/loops.h"

#include <algorithm>

#include "ops/arguments.h"
#include "ops/table.h"

namespace fluid {
namespace {

/// Returns the index of the buffer that holds `v`, the result of an "arg" op.
int64_t arg_index(const Value& v) { return v.op()->attrs.get<int64_t>("index"); }

}  // namespace

const ir::Op* loops_op(const ir::Graph& body) {
  const auto op = std::ranges::find_if(
      body.ops, [](const auto& o) { return std::holds_alternative<Loops>(*def_of(*o).lower); });
  return op == body.ops.end() ? nullptr : op->get();
}

int64_t cpu_accumulators(int vector_bits) {
  const int registers = vector_bits >= 512 ? 32 : 16;
  return registers * 3 / 4 * vector_bits / (8 * kir::kVectorBytes);
}

kir::Kernel loops_kernel(const ir::Op& op, const std::string& name, KernelDevice device,
                         int64_t accumulators) {
  return loops_kernel(op, def_of(op), name, device, accumulators);
}

kir::Kernel loops_kernel(const ir::Op& op, const OpDef& def, const std::string& name,
                         KernelDevice device, int64_t accumulators) {
  const std::vector<Type> in = operand_types(op.operands), out = result_types(op);
  const LoopsCtx context(op, in, out, device, accumulators);
  kir::Kernel kernel = std::get<Loops>(*def.lower).kernel(context);
  kernel.name = name;
  return kernel;
}

std::vector<InPlace> loops_in_place_pairs(const ir::Op& op) {
  std::vector<InPlace> pairs;
  const auto& outputs = op.graph()->outputs;
  for (const InPlace& pair : *def_of(op).in_place) {
    const Value result(const_cast<ir::Op*>(&op), pair.out);
    const Value operand = op.operands.at(static_cast<size_t>(pair.in));
    const auto output = std::ranges::find(outputs, result, &ir::Output::value);
    if (output == outputs.end() || result.type() != operand.type()) continue;
    if (std::ranges::count(op.operands, operand) > 1) continue;
    pairs.push_back({static_cast<int>(output - outputs.begin()),
                     static_cast<int>(arg_index(operand)), pair.required});
  }
  return pairs;
}

}  // namespace fluid
