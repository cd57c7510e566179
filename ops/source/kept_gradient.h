#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// Name of a bool attribute of a `param` op. If it is true, training steps store the parameter's
/// gradient in the state kept_gradient_name().
inline constexpr const char* kKeepGradient = "keep_gradient";

/// Name prefix of debug outputs, such as those of `train --dump`. The program hash of a checkpoint
/// ignores these outputs and the attribute kKeepGradient.
inline constexpr std::string_view kDumpPrefix = "dump.";

inline std::string kept_gradient_name(std::string_view parameter) {
  return std::string(parameter) + ".gradient";
}

}  // namespace fluid
