#pragma once

#include <span>

#include "codegen/kernel_ir.h"

namespace fluid::testing {

/// Runs a kernel as its text says, one scalar at a time: blocks in order, then `finish`. The oracle
/// of emitted code. Elementary functions are the C library's, in double precision and then rounded.
void interpret(const kir::Kernel& kernel, std::span<void* const> buffers, int64_t batch);

}  // namespace fluid::testing
