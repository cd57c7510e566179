#include "tests/support/kernel_runner.h"

#include <cstring>

#include "codegen/compiler.h"
#include "codegen/schedule.h"

namespace fluid::testing {
namespace {

/// A group that holds `op` alone.
void make_group(const ir::Op& op, ir::Graph& body) {
  std::vector<Value> args;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Attrs attrs = {{"index", static_cast<int64_t>(i)}};
    args.push_back(body.append("arg", {}, attrs, {op.operands[i].type()})->result());
  }
  std::vector<Type> types;
  for (const ir::Result& r : op.results) types.push_back(r.type);
  ir::Op* copy = body.append(op.name, args, op.attrs, types);
  for (size_t r = 0; r < types.size(); ++r) {
    body.outputs.push_back({std::to_string(r), copy->result(static_cast<int>(r))});
  }
}

std::vector<int64_t> extents_of(const Shape& shape, int64_t batch) {
  std::vector<int64_t> extents;
  for (const Dim& d : shape) extents.push_back(d.at(batch));
  return extents;
}

void run_kernel(const kir::Kernel& kernel, const CompiledKernel& code, const ir::Op& op,
                int64_t batch, std::map<Value, Tensor>& values) {
  std::vector<Tensor> memory;
  size_t in = 0, out = 0;
  for (const kir::Buffer& b : kernel.buffers) {
    const Value result(const_cast<ir::Op*>(&op), static_cast<int>(out));
    switch (b.role) {
      case kir::Buffer::Role::in:
        memory.push_back(values.at(op.operands.at(in++)));
        break;
      case kir::Buffer::Role::out:
        values[result] = Tensor(b.dtype, extents_of(op.results.at(out++).type.shape, batch));
        memory.push_back(values.at(result));
        break;
      default:
        memory.emplace_back(b.dtype, std::vector<int64_t>{b.elements.at(batch)});
    }
  }
  std::vector<void*> pointers;
  for (Tensor& t : memory) pointers.push_back(t.data());
  const int64_t blocks = kir::evaluate(kernel.blocks, batch);
  // Two ranges, the later first: a kernel may not depend on either.
  code.body(pointers.data(), batch, blocks / 2, blocks);
  code.body(pointers.data(), batch, 0, blocks / 2);
  if (code.finish != nullptr) code.finish(pointers.data(), batch, 0, 1);
}

}  // namespace

std::vector<kir::Kernel> kernels_of(const ir::Graph& graph) {
  std::vector<kir::Kernel> kernels;
  for (const auto& op : graph.ops) {
    const Lower& lower = *def_of(*op).lower;
    if (!std::holds_alternative<Map>(lower) && !std::holds_alternative<Reduce>(lower)) continue;
    ir::Program group("group");
    make_group(*op, group.main());
    kernels.push_back(schedule(group.main(), "k" + std::to_string(kernels.size())));
  }
  return kernels;
}

NamedTensors run_kernels(ir::Graph& graph, const NamedTensors& sources, int64_t batch) {
  const std::vector<kir::Kernel> kernels = kernels_of(graph);
  Compiler compiler{CompilerOptions{}};
  const std::vector<CompiledKernel> code = compiler.compile(kernels);
  std::map<Value, Tensor> values;
  size_t next = 0;
  for (const auto& op : graph.ops) {
    const Lower& lower = *def_of(*op).lower;
    if (std::holds_alternative<Source>(lower)) {
      values[op->result()] = sources.at(op->symbol);
    } else if (std::holds_alternative<Alias>(lower)) {
      const Tensor& from = values.at(op->operands[0]);
      Tensor to(from.dtype(), extents_of(op->results[0].type.shape, batch));
      std::memcpy(to.data(), from.data(), static_cast<size_t>(from.bytes()));
      values[op->result()] = to;
    } else {
      run_kernel(kernels[next], code[next], *op, batch, values);
      ++next;
    }
  }
  NamedTensors outputs;
  for (const ir::Output& o : graph.outputs) outputs[o.name] = values.at(o.value);
  return outputs;
}

}  // namespace fluid::testing
