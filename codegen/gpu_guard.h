#pragma once

// What a step on a GPU needs besides the kernels of its ops, so that data which they refuse changes
// no variable, without the host having to look.

#include "codegen/kernel_ir.h"

namespace fluid {

/// `pass` with one buffer more, a word (i64): it does nothing where that is not 0.
kir::Kernel unless_refused(kir::Kernel pass);

/// Sets the word of its second buffer to something other than 0 when one of the `count` pairs of
/// error words in its first (see codegen/schedule.h) is set. A word that is not 0 stays so.
kir::Kernel refusal_pass(int64_t count);

/// Copies `bytes` from its first buffer to its second.
kir::Kernel copy_pass(int64_t bytes);

}  // namespace fluid
