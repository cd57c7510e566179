#pragma once

#include <optional>
#include <string>

#include "executor/gpu/backend_table.h"

namespace fluid {

/// Of a GPU's entry below: why programs cannot run on it, where they cannot.
inline constexpr const char* kGpuProblem = "problem";

/// A GPU's entry in the JSON that `fluidrun devices --json` prints: an object, on one line.
std::string to_json(const FluidGpuDescription& gpu);

/// What is planned with, of GPU `device` in such JSON of a whole machine. Throws UserError naming
/// `file` when there is no such GPU, or its entry is missing something or cannot be.
FluidGpuDescription gpu_from_json(const std::string& text, const std::string& file, int device);

/// The number of the first GPU in such JSON that programs can run on, if there is one.
std::optional<int> first_supported_gpu(const std::string& text, const std::string& file);

}  // namespace fluid
