#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "executor/options/place.h"

namespace fluid {

/// The numbers of the machine's GPUs that programs can run on. Of the processes of a host each has
/// that at its local rank; or the one that there is, where CUDA_VISIBLE_DEVICES leaves it one.
/// Throws DeviceError when a GPU does not answer.
std::vector<int> place_gpus();

/// "cpu", "cuda", which is the GPU of this process, "cuda:N", whether there is such a GPU or not,
/// or "auto". Throws UserError for anything else.
Place place_named(std::string_view name, int local_rank = 0);

/// The GPU of this process where programs run on the machine's GPUs, else the CPU. Throws UserError
/// when there are GPUs, but fewer than processes, DeviceError when the GPU does not answer.
Place best_place(int local_rank = 0);

/// Why best_place() is the CPU, in one line, where the machine seems to have a GPU that nobody
/// hides by CUDA_VISIBLE_DEVICES; else "".
std::string why_no_gpu();

}  // namespace fluid
