#pragma once

namespace fluid {

/// Names of attributes of a `param` op that is a factor of a low-rank adapter. kLoraOf: the name of
/// the adapted weight. kLoraScale, set on the second factor only: scale of the product of the
/// factors.
inline constexpr const char* kLoraOf = "lora_of";
inline constexpr const char* kLoraScale = "lora_scale";

/// Suffixes of the names of the factors, after the name of the weight.
inline constexpr const char* kLoraSuffixes[] = {".lora_a", ".lora_b"};

}  // namespace fluid
