#pragma once

// Runs a program the way it runs for real, in small: expanded, fused, scheduled, compiled.

#include "tests/support/interpreter.h"

namespace fluid::testing {

struct FusedRun {
  NamedTensors outputs;
  int kernels = 0;
  int passes = 0;  ///< on the emulator of GPUs
};

struct FusedOptions {
  int64_t batch = 1;
  bool fuse = true;
  bool block_by_block = false;  ///< one block a call, the last one first
  bool in_place = false;        ///< results overwrite the operands that they may
  bool gpu = false;             ///< by the emulator of GPUs
  bool backwards = false;       ///< its last thread first
};

/// Fuses main of `program` (changing it) and runs its kernels on `sources`, named by symbol.
FusedRun run_fused(ir::Program& program, const NamedTensors& sources, const FusedOptions& options);

/// For every `data` op of main a tensor: floats in [0.1, 2), integers in [0, 2).
NamedTensors random_sources(const ir::Program& program, int64_t batch, uint64_t seed);

/// Expects what the interpreter gives for every output, within `tolerance` of 1 + |value|, whole
/// and block by block (with equal bits), in place, with one kernel an op, and on an emulated GPU,
/// in place too and whatever thread comes first. Returns the number of kernels.
int expect_fused_as_interpreted(const ir::Program& program, int64_t batch, double tolerance,
                                uint64_t seed = 1);

}  // namespace fluid::testing
