#pragma once

// Schedules a group as several kernels, if its row-wise schedule (Sweep) has too few rows to fill a
// GPU.
//
// The row-wise schedule computes the reductions of a row, and the roots that read them, in one
// block. For example, it sums an NHWC tensor with 64 channels over the pixels in 512 blocks. In
// each block, only 16 threads are busy, each with 4 channels. In the schedule of this file, the
// kernels of a stage compute all results of the stage in parallel. A reduction of many elements to
// few results is split into partial reductions, and another kernel combines the partial results in
// order. Elementwise roots over the same elements are computed with the partial reductions, and
// elementwise roots over the results with their combination.

#include <vector>

#include "codegen/schedule_sweep.h"

namespace fluid {

/// Number of threads needed to hide the memory latency of a GPU.
constexpr double kBusyThreads = 32 * 1024;

/// Whether the row-wise schedule (Sweep) would leave most of a GPU idle but schedule_in_stages()
/// would not. Counts the partial results that the finish function combines. `sweep`: the kernels of
/// the row-wise schedule, with their thread group sizes.
bool leaves_gpu_idle(const Group& group, const std::vector<kir::Kernel>& sweep);

/// Returns the kernels of the group in launch order. They have the same buffers as the
/// row-wise schedule, except for scratch buffers. Valid only if leaves_gpu_idle() is true.
std::vector<kir::Kernel> schedule_in_stages(const Group& group, const std::string& name);

}  // namespace fluid
