#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "passes/options.h"

namespace fluid {

/// In which training may run: f32, or mixed precision at either level.
enum class Precision : uint8_t { f32, o1, o2 };

/// A precision as checkpoints and messages say it: "off", "bf16", "o2 f16 with a loss scale ...".
std::string amp_text(const std::optional<AmpOptions>& amp);
/// Which precision such a text is of.
Precision precision_in(std::string_view amp_text);

}  // namespace fluid
