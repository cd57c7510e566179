#pragma once

#include <string>

#include "executor/options/params_layout.h"
#include "frontend/files/safetensors.h"
#include "ir/graph.h"

namespace fluid {

/// Reads a safetensors file for `program`. With layout `pytorch`, transposes the weights of linear
/// layers. Checks the shapes of these weights only. Throws UserError in these cases:
/// - the layout is unspecified, a weight is square, and Fluid did not write the file;
/// - a weight has a shape that fits only the other layout;
/// - the layout is `pytorch`, and Fluid wrote the file.
TensorFile read_parameters(const std::string& path, ParamsLayout layout,
                           const ir::Program& program);

/// Returns the error message for a parameter that `file` lacks. The message lists the most similar
/// names in the file.
std::string missing_parameter_message(const std::string& path, const std::string& name,
                                      const TensorFile& file);

}  // namespace fluid
