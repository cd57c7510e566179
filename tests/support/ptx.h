#pragma once

#include <string>
#include <vector>

#include "ops/kernel_ir.h"

namespace fluid::testing {

/// NVIDIA's assembler for PTX: its path, or "" when there is none.
std::string ptx_assembler();

/// The architectures for which kernels are tested.
std::vector<std::string> gpu_architectures();

/// Limits of a thread of a kernel.
struct PtxLimits {
  int registers = 255;
  int spilled = 0;  ///< bytes of registers that the assembler puts into memory
};

/// Expects that `assembler` takes the passes, each distinct one once, and that the code asks for no
/// memory of a thread's own: for every architecture in full runs and where they are few, else each
/// for one of the architectures, in turns. What it says of a kernel names it by the
/// kernel's name and a number. Prints how many registers they take.
void expect_assembles(const std::string& assembler, std::vector<kir::Kernel> passes,
                      const std::vector<std::string>& architectures, const PtxLimits& most_of = {});

}  // namespace fluid::testing
