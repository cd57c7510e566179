#pragma once

#include <optional>
#include <string>

#include "executor/gpu_driver/backend_table.h"

namespace fluid {

/// Key of a GPU's entry that says why the GPU cannot run programs.
inline constexpr const char* kGpuProblem = "problem";

/// The GPU's entry in the output of `fluidrun devices --json`: an object on one line.
std::string to_json(const FluidGpuDescription& gpu);

/// Parses GPU `device` of a machine's JSON description. Throws UserError with `file` in its message
/// when there is no such GPU, or its entry is incomplete or invalid.
FluidGpuDescription gpu_from_json(const std::string& text, const std::string& file, int device);

/// The index of the first supported GPU in a machine's JSON description, if any.
std::optional<int> first_supported_gpu(const std::string& text, const std::string& file);

}  // namespace fluid
