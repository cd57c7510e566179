#pragma once

namespace fluid {

/// Names of attributes of a `param` op that is a low-rank adapter. kLoraOf: the name of the weight.
/// kLoraScale, of the second factor only: multiplies the adapters' product.
inline constexpr const char* kLoraOf = "lora_of";
inline constexpr const char* kLoraScale = "lora_scale";

}  // namespace fluid
