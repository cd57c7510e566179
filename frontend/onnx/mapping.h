#pragma once

// Translates single nodes into ops.

#include <functional>
#include <string>
#include <vector>

#include "frontend/onnx/node.h"

namespace fluid::onnx {

/// Records a constant tensor of the model, and returns its value. An importer records it as a
/// frozen parameter.
using RecordConstant = std::function<Value(const Tensor&)>;

/// Records the ops of a node in `graph`. Returns one operand for each output of the node; outputs
/// that the node omits are empty. An output that depends on no value, such as the outputs of
/// Constant and Shape, is a tensor. Throws NotMapped, which names the operator and the reason, if
/// Fluid cannot compute the node. Throws UserError for inputs whose types do not fit.
Operands record_node(ir::Graph& graph, const Node& node, const RecordConstant& constant,
                     const Loc& loc = Loc::here());

/// The operators that record_node() maps, sorted by name.
std::vector<std::string> mapped_operators();

}  // namespace fluid::onnx
