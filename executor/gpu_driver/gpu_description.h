#pragma once

#include <optional>
#include <string>

#include "executor/gpu_driver/backend_table.h"

namespace fluid {

/// Key in a GPU's JSON entry. Its value is the reason why the GPU cannot run programs.
inline constexpr const char* kGpuProblem = "problem";

/// Formats the properties of a GPU as a JSON object on one line, for the output of `fluidrun
/// devices --json`.
std::string to_json(const FluidGpuDescription& gpu);

/// Parses the entry of GPU `device` in `text`, a machine's JSON description. Throws UserError if
/// the entry is missing, incomplete or invalid. The message names `file`.
FluidGpuDescription gpu_from_json(const std::string& text, const std::string& file, int device);

/// The index of the first supported GPU in a machine's JSON description; nullopt if there is none.
std::optional<int> first_supported_gpu(const std::string& text, const std::string& file);

}  // namespace fluid
