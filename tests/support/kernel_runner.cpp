#include "tests/support/kernel_runner.h"

#include <cstring>

#include "codegen/compiler.h"
#include "codegen/gpu.h"
#include "codegen/schedule.h"
#include "tests/support/gpu_emulator.h"
#include "tests/support/gpu_runner.h"
#include "tests/support/kernel_buffers.h"
#include "tests/support/op_group.h"

namespace fluid::testing {
namespace {

/// Runs the kernels of an op, whose buffers are those of `kernel`.
void run_op(const kir::Kernel& kernel, const ir::Op& op, int64_t batch,
            std::map<Value, Tensor>& values,
            const std::function<void(std::span<void* const>)>& run) {
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
        memory.push_back(memory_of(kernel, b, batch));
    }
  }
  std::vector<void*> pointers;
  for (Tensor& t : memory) pointers.push_back(t.data());
  copy_to_overwriting_results(*def_of(op).in_place, std::span(memory).first(in), pointers);
  run(pointers);
}

void run_on_cpu(const kir::Kernel& kernel, const CompiledKernel& code, int64_t batch,
                std::span<void* const> buffers) {
  const int64_t blocks = kir::evaluate(kernel.blocks, batch);
  // Two ranges, the later first: a kernel may not depend on either.
  code.body(buffers.data(), batch, blocks / 2, blocks);
  code.body(buffers.data(), batch, 0, blocks / 2);
  if (code.finish != nullptr) code.finish(buffers.data(), batch, 0, 1);
}

void for_each_group(const ir::Graph& graph, const std::function<void(const ir::Graph&)>& visit) {
  for (const auto& op : graph.ops) {
    const Lower& lower = *def_of(*op).lower;
    if (!std::holds_alternative<Map>(lower) && !std::holds_alternative<Reduce>(lower) &&
        !std::holds_alternative<Loops>(lower)) {
      continue;
    }
    ir::Program group("group");
    make_group(*op, group.main());
    visit(group.main());
  }
}

using RunOp = std::function<void(size_t number, const ir::Op& op, std::map<Value, Tensor>&)>;

/// `run` is called for each op that has kernels.
NamedTensors evaluate(ir::Graph& graph, const NamedTensors& sources, int64_t batch,
                      const RunOp& run) {
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
      run(next++, *op, values);
    }
  }
  NamedTensors outputs;
  for (const ir::Output& o : graph.outputs) outputs[o.name] = values.at(o.value);
  return outputs;
}

template <class Gpu>
NamedTensors run_passes_by(Gpu& gpu, ir::Graph& graph, const NamedTensors& sources, int64_t batch) {
  const std::vector<std::vector<kir::Kernel>> passes = gpu_kernels_of(graph);
  return evaluate(graph, sources, batch, [&](size_t n, const ir::Op& op, auto& values) {
    run_op(passes[n].front(), op, batch, values,
           [&](std::span<void* const> buffers) { gpu.run(passes[n], buffers, batch); });
  });
}

}  // namespace

std::vector<kir::Kernel> kernels_of(const ir::Graph& graph) {
  std::vector<kir::Kernel> kernels;
  for_each_group(graph, [&](const ir::Graph& body) {
    kernels.push_back(schedule(body, "k" + std::to_string(kernels.size())));
  });
  return kernels;
}

std::vector<std::vector<kir::Kernel>> gpu_kernels_of(const ir::Graph& graph) {
  std::vector<std::vector<kir::Kernel>> kernels;
  for_each_group(graph, [&](const ir::Graph& body) {
    kernels.push_back(schedule_gpu(body, "k" + std::to_string(kernels.size())));
  });
  return kernels;
}

NamedTensors run_kernels(ir::Graph& graph, const NamedTensors& sources, int64_t batch,
                         Processor processor) {
  if (processor == Processor::emulated_gpu) {
    GpuEmulator gpu;
    return run_passes_by(gpu, graph, sources, batch);
  }
  if (processor == Processor::gpu) {
    return run_passes_by(GpuRunner::first_gpu(), graph, sources, batch);
  }
  const std::vector<kir::Kernel> kernels = kernels_of(graph);
  Compiler compiler{CompilerOptions{}};
  const std::vector<CompiledKernel> code = compiler.compile(addresses(kernels));
  return evaluate(graph, sources, batch, [&](size_t n, const ir::Op& op, auto& values) {
    run_op(kernels[n], op, batch, values, [&](std::span<void* const> buffers) {
      run_on_cpu(kernels[n], code[n], batch, buffers);
    });
  });
}

}  // namespace fluid::testing
