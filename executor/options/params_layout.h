#pragma once

#include <cstdint>

namespace fluid {

/// How a file of parameters holds the weights of linear layers, those that a program multiplies by
/// from the right: as Fluid does, [in, out], or as PyTorch does, [out, in].
enum class ParamsLayout : uint8_t { unsaid, fluid, pytorch };

}  // namespace fluid
