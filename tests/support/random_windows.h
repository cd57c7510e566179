#pragma once

#include "tests/support/random_choice.h"

namespace fluid::testing {

/// Records a convolution, a pooling or another op that reads windows of [N, C, ...], with one to
/// three spatial dimensions and random strides, paddings, dilations and groups.
Value random_window_op(const Choice& c);

}  // namespace fluid::testing
