#pragma once

// ONNX's test vectors: small models with inputs and expected outputs, one JSON object a line.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "frontend/onnx/mapping.h"
#include "frontend/program.h"
#include "tests/support/interpreter.h"

namespace fluid::testing {

/// The lines of a file, which may be compressed; empty if there is no such file.
std::vector<nlohmann::json> read_onnx_vectors(const std::string& path);

/// Operator names of the vector's nodes and of their graphs, each once.
std::vector<std::string> operators_of(const nlohmann::json& vector);

/// A vector as a program. Its inputs and constants are feeds.
struct OnnxProgram {
  Program program{"onnx"};
  NamedTensors sources;
  NamedTensors constants;  ///< outputs that are known without running the program
};

/// Records the vector. `inputs_known`: whether the mapping may read the model's inputs as
/// constants. Throws onnx::Unsupported also for dtypes that Fluid does not have.
std::unique_ptr<OnnxProgram> record_onnx_vector(const nlohmann::json& vector, bool inputs_known);

/// Differences from the expected outputs, beyond the vector's tolerance; "" if there are none.
std::string difference_from_expected(const nlohmann::json& vector, const NamedTensors& outputs);

}  // namespace fluid::testing
