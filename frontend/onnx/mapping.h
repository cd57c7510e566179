#pragma once

// Translates ONNX nodes and graphs into ops.

#include <functional>
#include <string>
#include <vector>

#include "frontend/onnx/node.h"

namespace fluid::onnx {

/// Records a constant tensor of the model in the graph, for example as a frozen parameter. Returns
/// its value.
using RecordConstant = std::function<Value(const Tensor&)>;

/// Records the ops of a node in `graph`. Returns one operand for each output of the node; outputs
/// that the node omits are empty. Outputs known during import, such as those of Constant and Shape,
/// are tensors. Throws Unsupported, which names the operator and the reason, if Fluid cannot
/// compute the node. Throws UserError for inputs of invalid types.
Operands record_node(ir::Graph& graph, const Node& node, const RecordConstant& constant,
                     const Loc& loc = Loc::here());

/// Records the nodes of `onnx_graph`, for example the main graph of a model, in `graph`. `inputs`:
/// one operand per input of `onnx_graph`. `outer` finds values of the enclosing ONNX graphs; null
/// if there are none. Returns one operand per output. Throws as record_node(), and Unsupported for
/// a name that has no value.
Operands record_graph(ir::Graph& graph, const Graph& onnx_graph, const Operands& inputs,
                      const RecordConstant& constant, const FindOperand& outer = {},
                      const Loc& loc = Loc::here());

/// The names of the ONNX operators that record_node() supports, sorted.
std::vector<std::string> supported_operators();

}  // namespace fluid::onnx
