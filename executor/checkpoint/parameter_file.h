#pragma once

#include <string>

#include "executor/options/params_layout.h"
#include "frontend/files/safetensors.h"
#include "ir/graph.h"

namespace fluid {

/// Reads a safetensors file for `program`. With layout `pytorch`, transposes the weights of linear
/// layers. Throws UserError in three cases. The layout is unspecified and a square weight comes
/// without Fluid's checksum. Only the transpose of a weight has the right shape. Or `pytorch` is
/// given for a file that Fluid wrote. Other shapes are not checked.
TensorFile read_parameters(const std::string& path, ParamsLayout layout,
                           const ir::Program& program);

/// The error message for a missing parameter; lists the names in the file that are closest.
std::string missing_parameter(const std::string& path, const std::string& name,
                              const TensorFile& file);

}  // namespace fluid
