#pragma once

#include <span>

#include "ops/kernel_ir.h"

namespace fluid::testing {

/// Runs a kernel as its text says, one scalar at a time: blocks in order, then `finish`. The oracle
/// of emitted code. Elementary functions are the C library's, in double precision and then rounded.
/// Returns how many operations on floats it evaluated.
double interpret(const kir::Kernel& kernel, std::span<void* const> buffers, int64_t batch);

}  // namespace fluid::testing
