#pragma once

// Nodes and graphs of an ONNX model, as passed by an importer.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid::onnx {

/// An input or output of a node: a value of the graph, a constant tensor, or both. Empty if the
/// node omits the input or output.
struct Operand {
  Operand() = default;
  Operand(Value v) : value(v) {}                 // NOLINT: implicit conversion
  Operand(Tensor t) : constant(std::move(t)) {}  // NOLINT: implicit conversion
  Operand(Value v, std::optional<Tensor> t) : value(v), constant(std::move(t)) {}
  explicit operator bool() const { return value || constant.has_value(); }

  Value value;
  std::optional<Tensor> constant;
};

using Operands = std::vector<Operand>;

/// Finds a value of the model by its name. Returns an empty operand if there is none.
using FindOperand = std::function<Operand(const std::string&)>;

struct GraphNode;

/// The main graph of a model, or an attribute of a node, such as the body of Scan.
struct Graph {
  std::vector<std::string> inputs, outputs;    ///< names of values
  std::map<std::string, Tensor> initializers;  ///< constants by name
  std::vector<GraphNode> nodes;                ///< each after the nodes whose outputs it reads
};

struct Node {
  std::string op;     ///< operator, such as "Conv"
  int64_t opset = 0;  ///< version of the operator set of the node's domain
  Attrs attrs;        ///< attributes that are ints, floats, strings, or lists of them
  std::map<std::string, Tensor> tensors;  ///< attributes that are tensors
  std::map<std::string, Graph> graphs;    ///< attributes that are graphs
  Operands inputs;
  std::vector<std::string> outputs;  ///< names; "" if the node omits the output
  /// Finds the values that the node may read by name; may be null. Used for attributes that hold
  /// the name of a tensor, such as `y` of operator Gradient, and by the graphs of the node.
  FindOperand find = {};
};

/// A node of a graph. record_graph() sets `inputs` and `find` of `node`.
struct GraphNode {
  Node node;
  /// Names of values of this graph or of an enclosing graph; "" if the node omits the input.
  std::vector<std::string> inputs;
};

/// Thrown if Fluid does not support the node's operator, or its attributes or inputs.
class Unsupported : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace fluid::onnx
