#include "tests/support/kernel_runner.h"

#include <cstring>
#include <thread>

#include "codegen/compiler.h"
#include "codegen/gpu.h"
#include "codegen/schedule.h"
#include "tests/support/gpu_emulator.h"
#include "tests/support/gpu_runner.h"
#include "tests/support/kernel_buffers.h"
#include "tests/support/op_group.h"

namespace fluid::testing {
namespace {

/// Runs the kernels of an op, whose buffers are those of `kernel`. Each byte of results and scratch
/// is `fill` before.
void run_op(const kir::Kernel& kernel, const ir::Op& op, int64_t batch,
            std::map<Value, Tensor>& values, const std::function<void(std::span<void* const>)>& run,
            int fill = 0) {
  std::vector<Tensor> memory;
  size_t in = 0, out = 0;
  for (const kir::Buffer& b : kernel.buffers) {
    const Value result(const_cast<ir::Op*>(&op), static_cast<int>(out));
    switch (b.role) {
      case kir::Buffer::Role::in:
        memory.push_back(values.at(op.operands.at(in++)));
        continue;
      case kir::Buffer::Role::out:
        values[result] = Tensor(b.dtype, extents_of(op.results.at(out++).type.shape, batch));
        memory.push_back(values.at(result));
        break;
      default:
        memory.push_back(memory_of(kernel, b, batch));
        if (b.role != kir::Buffer::Role::scratch) continue;
    }
    std::memset(memory.back().data(), fill, static_cast<size_t>(memory.back().bytes()));
  }
  std::vector<void*> pointers;
  for (Tensor& t : memory) pointers.push_back(t.data());
  copy_to_overwriting_results(*def_of(op).in_place, std::span(memory).first(in), pointers);
  run(pointers);
}

/// Runs the blocks of a kernel as `ranges` ranges: on as many threads, or one after the other, the
/// last first.
void run_blocks(const kir::Kernel& kernel, const CompiledKernel& code, int64_t batch,
                std::span<void* const> buffers, int64_t ranges, bool parallel) {
  const int64_t blocks = kir::evaluate(kernel.blocks, batch);
  std::vector<std::jthread> threads;
  for (int64_t i = ranges; i-- > 0;) {
    const auto run = [&code, buffers, batch, begin = blocks * i / ranges,
                      end = blocks * (i + 1) / ranges] {
      code.body(buffers.data(), batch, begin, end);
    };
    if (parallel) {
      threads.emplace_back(run);
    } else {
      run();
    }
  }
  threads.clear();
  if (code.finish != nullptr) code.finish(buffers.data(), batch, 0, 1);
}

bool has_equal_bytes(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

/// Throws InternalError if the bits of a result depend on how the blocks are partitioned, or on
/// what memory held before.
void run_on_cpu(const kir::Kernel& kernel, const CompiledKernel& code, const ir::Op& op,
                int64_t batch, std::map<Value, Tensor>& values) {
  struct Partition {
    int64_t ranges;
    bool parallel;
  };
  const auto run = [&](const Partition& p, int fill, std::map<Value, Tensor>& to) {
    run_op(
        kernel, op, batch, to,
        [&](std::span<void* const> buffers) {
          run_blocks(kernel, code, batch, buffers, p.ranges, p.parallel);
        },
        fill);
  };
  run({.ranges = 1, .parallel = false}, 0, values);
  for (const Partition& p : {Partition{2, true}, {3, true}, {16, false}}) {
    std::map<Value, Tensor> others = values;
    run(p, 0xFF, others);
    for (size_t r = 0; r < op.results.size(); ++r) {
      const Value result(const_cast<ir::Op*>(&op), static_cast<int>(r));
      check(has_equal_bytes(values.at(result), others.at(result)), [&] {
        return op.name + ": result " + std::to_string(r) + " has other bits in " +
               std::to_string(p.ranges) + " ranges of blocks";
      });
    }
  }
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
    run_on_cpu(kernels[n], code[n], op, batch, values);
  });
}

}  // namespace fluid::testing
