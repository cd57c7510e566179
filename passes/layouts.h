#pragma once

#include "ir/type.h"

namespace fluid {

/// The channels-last (NHWC) layout of images of shape [n, c, h, w]. Libraries accept this layout
/// without a reorder and without channel padding. Generated code vectorizes along channels.
inline Layout channels_last() { return {.order = {0, 2, 3, 1}, .blocks = {}}; }

}  // namespace fluid
