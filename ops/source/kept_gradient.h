#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// Name of a bool attribute of a `param` op: training steps store the parameter's gradient in the
/// state kept_gradient_name().
inline constexpr const char* kKeepGradient = "keep_gradient";

inline std::string kept_gradient_name(std::string_view parameter) {
  return std::string(parameter) + ".gradient";
}

}  // namespace fluid
