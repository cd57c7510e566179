#pragma once

// RNN, GRU and LSTM of ONNX as layers of the frontend.

#include "tests/support/onnx.h"

namespace fluid::testing {

/// Absent for nodes that the layers do not express: other activations, clipping, peepholes, and a
/// GRU whose reset gate scales the state before the matmul (linear_before_reset = 0). Absent, too,
/// for sequence_lens and initial states, which no vector has.
std::optional<OnnxUse> recurrent(const nlohmann::json& node, const std::vector<Tensor>& in);

}  // namespace fluid::testing
