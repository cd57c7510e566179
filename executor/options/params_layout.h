#pragma once

#include <cstdint>

namespace fluid {

/// Layout of linear layers' weights in a parameter file: Fluid's [in, out] or PyTorch's [out, in].
enum class ParamsLayout : uint8_t { unsaid, fluid, pytorch };

}  // namespace fluid
