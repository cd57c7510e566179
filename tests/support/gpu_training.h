#pragma once

#include <memory>
#include <vector>

#include "executor/executor.h"
#include "executor/gpu/gpu_device.h"
#include "frontend/program.h"

namespace fluid::testing {

/// Convolution, pooling, normalisation, dropout, a dense layer of 3 classes: small, as every thread
/// is emulated.
Program small_network(bool dropout = true);

/// Samples for it, from number `first` on.
Batch batch_of(int64_t n, int64_t first = 0);

/// A GPU that the host stands in for.
std::unique_ptr<Device> stand_in(const GpuDeviceOptions& options = {});

double worst_difference(const Tensor& a, const Tensor& b);
/// Trains both on the batches, in order: how far losses on the way, and parameters after, are
/// apart.
double worst_difference(Executor& a, Executor& b, const std::vector<Batch>& batches);

/// All that a step writes; of the random state the seed and the run, not the first sample.
std::vector<std::byte> state_of(Executor& exe);

}  // namespace fluid::testing
