#pragma once

#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/parameter_metadata.h"
#include "executor/device/variables.h"
#include "executor/options/load_options.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

struct LoadedParameters {
  std::vector<std::pair<std::string, Tensor>> values;  ///< the program's variable name -> value
  LoadReport report;
  ParameterMetadata metadata;

  /// Whether weights of the program keep their values.
  bool keeps_weights() const {
    return !report.kept.empty() || !report.missing.empty() || !report.mismatched.empty();
  }
};

/// Reads a safetensors file for the variables `wanted` of `program`. Renames its tensors by
/// LoadOptions::maps, then converts names and layouts by `layout`. Throws UserError in these cases:
/// - the layout is unspecified, a linear weight is square, and Fluid did not write the file;
/// - a linear weight has a shape that fits only the other layout;
/// - the layout is `pytorch`, and Fluid wrote the file;
/// - a map is malformed or matches no tensor, or gives two tensors one name;
/// - a value overflows in the dtype of its variable;
/// - without LoadOptions::partial: a variable is missing or has another type, or a tensor is
/// unused;
/// - with LoadOptions::partial: no tensor fits.
/// A file of LoRA adapters (kLoraMetadata) may lack variables that it does not list; any other file
/// may lack LoRA adapters.
LoadedParameters read_parameters(const std::string& path, const LoadOptions& options,
                                 const ir::Program& program, const std::vector<Variable>& wanted);

/// Whether the shapes of `value` and `type` are equal, and their dtypes are equal or both
/// floating-point.
bool fits_variable(const Type& type, const Tensor& value);

}  // namespace fluid
