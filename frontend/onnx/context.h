#pragma once

// Gives the mapping functions access to a node's inputs and attributes.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/mapping.h"
#include "ops/ints.h"

namespace fluid::onnx {

/// The ONNX node that an op converter translates, with typed access to its inputs and attributes.
class Context {
 public:
  Context(ir::Graph& graph, const Node& node, const RecordConstant& record_constant, Loc loc)
      : graph_(graph), node_(node), record_constant_(record_constant), loc_(std::move(loc)) {}

  ir::Graph& graph() const { return graph_; }
  const Loc& loc() const { return loc_; }
  const std::string& op() const { return node_.op; }
  int64_t opset() const { return node_.opset; }

  size_t num_inputs() const { return node_.inputs.size(); }
  bool has_input(size_t i) const { return i < num_inputs() && static_cast<bool>(node_.inputs[i]); }
  /// Throws Unsupported if the node omits input i.
  const Operand& operand(size_t i) const;
  Value input(size_t i) const;                   ///< value of operand i; see value_of()
  Value value_of(const Operand& operand) const;  ///< records the operand if it is only a constant
  Values inputs() const;                         ///< values of all inputs
  const Tensor* find_constant(size_t i) const;  ///< tensor of input i; null if it is not a constant
  /// Tensor of input i. Throws Unsupported if it is not a constant.
  const Tensor& constant(size_t i) const;
  /// Elements of the constant integer input i.
  std::vector<int64_t> constant_integers(size_t i) const;
  Value record_constant(const Tensor& tensor) const { return record_constant_(tensor); }

  size_t num_outputs() const { return node_.outputs.size(); }
  bool has_output(size_t i) const { return i < num_outputs() && !node_.outputs[i].empty(); }

  bool has_attr(const char* name) const { return node_.attrs.has(name); }
  int64_t int_attr(const char* name, int64_t fallback) const;
  bool bool_attr(const char* name, bool fallback) const {
    return int_attr(name, fallback ? 1 : 0) != 0;
  }
  double float_attr(const char* name, double fallback) const;
  std::string string_attr(const char* name, const std::string& fallback) const;
  std::vector<int64_t> ints_attr(const char* name, const std::vector<int64_t>& fallback = {}) const;
  std::vector<double> floats_attr(const char* name) const;
  std::vector<std::string> strings_attr(const char* name) const;
  const Tensor* tensor_attr(const char* name) const;    ///< null if the node lacks the attribute
  Value tensor_value(const std::string& tensor) const;  ///< value of a model tensor by name
  /// Throws Unsupported if the node lacks the attribute.
  const Graph& graph_attr(const char* name) const;
  /// Records a graph of the node. Returns one operand per output of the graph.
  Operands record_body(const Graph& body, const Operands& inputs) const;

  /// Throws Unsupported with the operator and `reason`.
  [[noreturn]] void fail_unsupported(const std::string& reason) const;

 private:
  ir::Graph& graph_;
  const Node& node_;
  const RecordConstant& record_constant_;
  Loc loc_;
};

/// Records the ops of a node. Returns all outputs of the node, or only the first outputs if Fluid
/// does not support the others.
using Mapping = std::function<Operands(const Context&)>;
using Mappings = std::map<std::string, Mapping>;

void add_attention(Mappings& all);
void add_constants(Mappings& all);
void add_control(Mappings& all);
void add_elementwise(Mappings& all);
void add_indexing(Mappings& all);
void add_linear(Mappings& all);
void add_losses(Mappings& all);
void add_normalization(Mappings& all);
void add_recurrent(Mappings& all);
void add_quantization(Mappings& all);
void add_reductions(Mappings& all);
void add_resize(Mappings& all);
void add_shapes(Mappings& all);
void add_training(Mappings& all);
void add_windows(Mappings& all);

/// Returns `axis`, which may be negative, as an index in [0, rank).
inline int64_t normalize_axis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }
/// Returns `axis`, which may be negative, as an index. Throws Unsupported if x has no such
/// dimension.
int64_t dimension(const Context& c, Value x, int64_t axis);
/// Extent of dimension `axis` of x. Throws Unsupported if the extent is not a constant.
int64_t extent(const Context& c, Value x, int64_t axis);
std::vector<int64_t> extents(const Context& c, Value x);  ///< extents of all dimensions
std::vector<int64_t> elements(const Tensor& t);           ///< elements of an integer tensor
Tensor i64_tensor(const std::vector<int64_t>& elements);  ///< 1-D i64 tensor of `elements`
/// Moves dimension `from` of x to position `to`; negative: counted from the end.
Value move_axis(Value x, int64_t from, int64_t to);
/// Replaces each negative index i by i + extent.
Value normalize_indices(Value index, int64_t extent);
/// The dtype of an ONNX TensorProto.DataType. Throws Unsupported if Fluid has no such dtype.
DType dtype_of(const Context& c, int64_t data_type);

}  // namespace fluid::onnx
