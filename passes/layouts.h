#pragma once

#include "ir/type.h"

namespace fluid {

/// NHWC layout of images [n, c, h, w]. Libraries take it without reordering and without padding
/// channels to whole vectors. Generated code vectorizes along channels.
inline Layout channels_last() { return {.order = {0, 2, 3, 1}, .blocks = {}}; }

}  // namespace fluid
