#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// Name of a bool attribute of a `param` op: training steps store the parameter's gradient in the
/// state kept_gradient_name().
inline constexpr const char* kKeepGradient = "keep_gradient";

/// Prefix of the names of outputs that only show a value of the program, as `train --dump` does.
/// Such an output and kKeepGradient do not belong to what a checkpoint identifies a program by.
inline constexpr std::string_view kShownPrefix = "dump.";

inline std::string kept_gradient_name(std::string_view parameter) {
  return std::string(parameter) + ".gradient";
}

}  // namespace fluid
