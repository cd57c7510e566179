#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "executor/options/place.h"

namespace fluid {

/// Returns the indices of the usable GPUs. Throws DeviceError when a GPU does not respond.
std::vector<int> list_usable_gpus();

/// Parses the name of a place: "cpu", "cuda:N", "cuda" (the GPU of this process), or "auto"
/// (best_place()). The GPU need not exist. Throws UserError for any other name.
Place parse_place(std::string_view name, int local_rank = 0);

/// Returns the GPU of this process, or the CPU if the machine has no usable GPU. The GPU of this
/// process is element `local_rank` of list_usable_gpus(), or the only GPU that CUDA_VISIBLE_DEVICES
/// makes visible. Throws UserError when there are too few GPUs for the local ranks, and DeviceError
/// when the GPU does not respond.
Place best_place(int local_rank = 0);

/// Explains in one line why no GPU can be used although the machine seems to have one. Returns ""
/// when the machine has no GPU, when CUDA_VISIBLE_DEVICES hides the GPU, or when best_place() is a
/// GPU.
std::string explain_missing_gpu();

}  // namespace fluid
