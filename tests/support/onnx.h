#pragma once

// Nodes of ONNX as uses of our ops.

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid::testing {

struct OnnxUse {
  std::string op;
  std::vector<Tensor> operands;
  Attrs attrs;
  std::optional<Tensor> bias;  ///< of each channel, added to the result
  size_t results = 1;          ///< the leading results that the vector gives
  /// Records a layer of the frontend instead of `op`.
  std::function<Values(const Values& operands)> layer = {};
  std::map<std::string, Tensor> parameters = {};  ///< of the layer, by name
};

/// An input that the node leaves out is an empty tensor. Absent when no op of ours does what the
/// node asks for (no broadcasting of old, no resizing by roi, ...).
std::optional<OnnxUse> use_of(const nlohmann::json& node, const std::vector<Tensor>& inputs);

}  // namespace fluid::testing
