#pragma once

// A node of an ONNX model, as an importer hands it over.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid::onnx {

/// An input or output of a node: a value of the graph, a tensor known when the model is imported,
/// or both. Neither: the node leaves it out.
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
  std::vector<std::string> outputs;  ///< names; "": the node leaves the output out
  /// The model's tensor of a name, for attributes that name one: `y` of Gradient. May be empty.
  std::function<Operand(const std::string&)> find = {};
};

/// Fluid has no equivalent of the node, or only of other attributes or inputs.
class NotMapped : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace fluid::onnx
