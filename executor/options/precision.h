#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "passes/options.h"

namespace fluid {

/// Precision of a training step: f32, or mixed precision at level O1 or O2.
enum class Precision : uint8_t { f32, o1, o2 };

/// Text of a precision for checkpoints and messages: "off", "bf16", "o2 f16 with a loss scale ...".
std::string amp_text(const std::optional<AmpOptions>& amp);
/// Parses the text of amp_text().
Precision precision_in(std::string_view amp_text);

}  // namespace fluid
