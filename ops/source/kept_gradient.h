#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// Name of a bool attribute of a `param` op. If it is true, training steps store the parameter's
/// gradient in the state kept_gradient_name().
inline constexpr const char* kKeepGradient = "keep_gradient";

/// Prefix of the names of outputs that only show a value of the program, as `train --dump` does.
/// The program hash of a checkpoint omits these outputs and kKeepGradient.
inline constexpr std::string_view kDumpPrefix = "dump.";

inline std::string kept_gradient_name(std::string_view parameter) {
  return std::string(parameter) + ".gradient";
}

}  // namespace fluid
