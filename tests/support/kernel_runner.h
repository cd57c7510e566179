#pragma once

#include "ir/graph.h"
#include "ops/kernel_ir.h"
#include "tests/support/interpreter.h"

namespace fluid::testing {

enum class Processor : uint8_t { cpu, emulated_gpu, gpu };

/// The generated kernels of a graph without composite ops, one per op, in order.
std::vector<kir::Kernel> kernels_of(const ir::Graph& graph);
/// For GPUs: the passes of each op.
std::vector<std::vector<kir::Kernel>> gpu_kernels_of(const ir::Graph& graph);

/// Evaluates a graph without composite ops with generated kernels, one per op. Returns the outputs.
/// On the CPU, runs each kernel on one, two and three threads and in other partitions of its
/// blocks. Throws InternalError if the bits of a result differ.
NamedTensors run_kernels(ir::Graph& graph, const NamedTensors& sources, int64_t batch,
                         Processor processor = Processor::cpu);

}  // namespace fluid::testing
