#pragma once

#include "tests/support/random_choice.h"

namespace fluid::testing {

/// Returns x combined with the result of a few ops on small whole numbers and flags. The numbers
/// are of an integer or float dtype that holds them exactly, so that comparisons, ties and rounding
/// have one right result.
Value random_exact_op(const Choice& c);

/// Records an op that distinguishes equal operands, such as max(), on small whole numbers, whose
/// gradients go to a parameter.
Value random_tied_op(const Choice& c);

}  // namespace fluid::testing
