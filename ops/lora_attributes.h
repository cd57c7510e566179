#pragma once

#include <string_view>

namespace fluid {

/// Names of attributes of a `param` op that is a factor of a low-rank adapter. kLoraOf: the name of
/// the adapted weight. kLoraScale, set on the second factor only: scale of the product of the
/// factors.
inline constexpr const char* kLoraOf = "lora_of";
inline constexpr const char* kLoraScale = "lora_scale";

/// Suffixes of the names of the factors, after the name of the weight.
inline constexpr const char* kLoraSuffixes[] = {".lora_a", ".lora_b"};
/// Whether `name` ends in one of kLoraSuffixes.
inline bool has_lora_suffix(std::string_view name) {
  return name.ends_with(kLoraSuffixes[0]) || name.ends_with(kLoraSuffixes[1]);
}

}  // namespace fluid
