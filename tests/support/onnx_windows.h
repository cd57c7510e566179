#pragma once

// Convolutions, poolings and resizing of ONNX as uses of our ops. Absent where no op of ours does
// what the node asks for.

#include "tests/support/onnx.h"

namespace fluid::testing {

std::optional<OnnxUse> convolution(const nlohmann::json& attrs, const std::vector<Tensor>& in);
std::optional<OnnxUse> transposed_convolution(const nlohmann::json& attrs,
                                              const std::vector<Tensor>& in);
std::optional<OnnxUse> max_pool(const nlohmann::json& attrs, const std::vector<Tensor>& in);
std::optional<OnnxUse> average_pool(const nlohmann::json& attrs, const std::vector<Tensor>& in);
std::optional<OnnxUse> lp_pool(const nlohmann::json& attrs, const std::vector<Tensor>& in);
std::optional<OnnxUse> global_pool(const std::string& op, const std::vector<Tensor>& in);
std::optional<OnnxUse> resize(const nlohmann::json& attrs, const std::vector<Tensor>& in);
std::optional<OnnxUse> upsample(const nlohmann::json& attrs, const std::vector<Tensor>& in);

}  // namespace fluid::testing
