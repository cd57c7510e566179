#pragma once

#include <string>

#include "executor/options/params_layout.h"
#include "frontend/files/safetensors.h"
#include "ir/graph.h"

namespace fluid {

/// Reads a safetensors file for `program`, and transposes the weights of linear layers when the
/// layout is `pytorch`. Throws UserError for a square weight in a file without Fluid's checksum,
/// unless the layout is said; for a weight that only its transpose would fit; and for `pytorch`
/// when Fluid wrote the file. Other shapes are not checked.
TensorFile read_parameters(const std::string& path, ParamsLayout layout,
                           const ir::Program& program);

/// The message for a file at `path` that lacks the parameter `name`: names what it holds.
std::string missing_parameter(const std::string& path, const std::string& name,
                              const TensorFile& file);

}  // namespace fluid
