#pragma once

#include "ir/graph.h"
#include "tests/support/interpreter.h"

namespace fluid::testing {

/// Evaluates a graph without composite ops by the generated kernels, one an op. Gives the outputs.
NamedTensors run_kernels(ir::Graph& graph, const NamedTensors& sources, int64_t batch);

}  // namespace fluid::testing
