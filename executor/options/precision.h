#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "passes/options.h"

namespace fluid {

/// Precision of a training step: f32, or mixed precision. o1 keeps f32 weights; o2 adds
/// half-precision weights beside the f32 master weights.
enum class Precision : uint8_t { f32, o1, o2 };

/// Formats a precision for checkpoints and messages: "off", "bf16", "o2 f16 with a loss scale ...".
std::string amp_text(const std::optional<AmpOptions>& amp);
/// Parses text that amp_text() returned.
Precision parse_precision(std::string_view amp_text);

}  // namespace fluid
