#pragma once

#include "ir/type.h"

namespace fluid {

/// Of images [n, c, h, w]: channels innermost. Libraries take it without reordering and without
/// padding channels to whole vectors; generated code runs its lanes along channels.
inline Layout channels_last() { return {.order = {0, 2, 3, 1}, .blocks = {}}; }

}  // namespace fluid
