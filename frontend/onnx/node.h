#pragma once

// A node of an ONNX model, as passed by an importer.

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

struct Node {
  std::string op;     ///< operator, such as "Conv"
  int64_t opset = 0;  ///< version of the operator set of the node's domain
  Attrs attrs;        ///< attributes that are ints, floats, strings, or lists of them
  std::map<std::string, Tensor> tensors;  ///< attributes that are tensors
  Operands inputs;
  std::vector<std::string> outputs;  ///< names; "" if the node omits the output
  /// Callback that finds a tensor of the model by its name; may be null. Used for attributes that
  /// hold the name of a tensor, such as `y` of operator Gradient.
  std::function<Operand(const std::string&)> find = {};
};

/// Thrown if Fluid does not support the node's operator, or its attributes or inputs.
class Unsupported : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace fluid::onnx
