#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "frontend/program.h"

namespace fluid {

/// Ids of the recorded ops whose results the training step keeps for the backward pass: computed
/// forward, read backward. Empty for a program that is not trained.
std::set<int64_t> saved_ops(const Program& program);

/// The names of the parameters that the training step updates.
std::set<std::string> trained_parameters(const Program& program);

/// Bytes of the optimizer's own variables (moments) for the program's parameters.
int64_t optimizer_bytes(const Program& program);

}  // namespace fluid
