#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "executor/options/place.h"

namespace fluid {

/// Indices of the usable GPUs. A process uses the GPU of its local rank, or the only visible one.
/// Throws DeviceError when a GPU does not respond.
std::vector<int> place_gpus();

/// Parses "cpu", "auto", "cuda" (the GPU of this process) or "cuda:N", which need not exist. Throws
/// UserError for any other name.
Place place_named(std::string_view name, int local_rank = 0);

/// The GPU of this process, or the CPU if the machine has no usable GPU. Throws UserError when
/// there are fewer GPUs than local ranks, and DeviceError when the GPU does not respond.
Place best_place(int local_rank = 0);

/// Why best_place() is the CPU although the machine seems to have a GPU, in one line. "" when there
/// is none, or CUDA_VISIBLE_DEVICES hides it.
std::string why_no_gpu();

}  // namespace fluid
