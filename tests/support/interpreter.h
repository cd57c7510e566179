#pragma once

// A slow, plain evaluator of programs by the ops' own definitions: what generated kernels, passes
// and gradients are tested against. Floats are computed in double and rounded to their dtype once
// an op, or once an operation.

#include <functional>
#include <map>
#include <string>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "ops/table.h"

namespace fluid::testing {

using NamedTensors = std::map<std::string, Tensor>;

struct InterpretOptions {
  int64_t batch = 1;
  /// The definition of an op; the table's when empty. (A test may break one.)
  std::function<const OpDef&(const ir::Op&)> definition;
  /// A result of each op that writes its own kernel, and the operand in whose memory it lies.
  std::optional<InPlace> in_place = {};
  /// Whether each f32 operation within an op is rounded, as in compiled kernels: an op that rounds
  /// to integers gives other results for halves.
  bool round_operations = false;
};

struct Interpreted {
  std::map<Value, Tensor> values;  ///< values of the ops after composite ops are expanded
  NamedTensors outputs;
  NamedTensors stores;       ///< values written by `store` ops, by variable
  bool index_error = false;  ///< an index that came from data was out of range
  double operations = 0;     ///< operations on floats in kernels that ops write themselves
};

/// Evaluates `graph`, whose sources are given by symbol (`arg` ops: by index). Ops that expand are
/// replaced by what they expand into first, in the graph itself.
/// Throws InternalError for a read out of range that no guard covers.
Interpreted interpret(ir::Graph& graph, const NamedTensors& sources,
                      const InterpretOptions& options = {});

/// Replaces all ops that lower to Expand by simpler ones, repeatedly.
void expand_all(ir::Graph& graph,
                const std::function<const OpDef&(const ir::Op&)>& definition = def_of);

}  // namespace fluid::testing
