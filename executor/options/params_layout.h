#pragma once

#include <cstdint>

namespace fluid {

/// The layout of linear weights in a parameter file: `fluid` is [in, out], `pytorch` is [out, in].
enum class ParamsLayout : uint8_t { unspecified, fluid, pytorch };

}  // namespace fluid
