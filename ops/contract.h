#pragma once

#include "ops/table.h"

namespace fluid {

/// Turns products that are added into multiply-adds: a * b + c into fma(a, b, c), and the body a *
/// b of a sum into a product whose addition to the sum is one. It looks at the expressions of one
/// op alone, before those of other ops are substituted: so a value has the same bits in whatever
/// kernel it is computed, and beside whatever ops. LLVM contracts nothing.
void contract(Lowered& lowered);

}  // namespace fluid
