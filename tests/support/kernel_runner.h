#pragma once

#include "codegen/kernel_ir.h"
#include "ir/graph.h"
#include "tests/support/interpreter.h"

namespace fluid::testing {

/// The generated kernels of a graph without composite ops, one an op, in order.
std::vector<kir::Kernel> kernels_of(const ir::Graph& graph);

/// Evaluates a graph without composite ops by the generated kernels, one an op. Gives the outputs.
NamedTensors run_kernels(ir::Graph& graph, const NamedTensors& sources, int64_t batch);

}  // namespace fluid::testing
