#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "frontend/program.h"

namespace fluid {

/// The values, parameters and optimizer memory that a training step of a program uses; empty for a
/// program without `train`.
struct TrainingNeeds {
  /// Ids of the recorded ops whose results the step keeps for the backward pass: computed forward,
  /// read backward.
  std::set<int64_t> saved_ops;
  std::set<std::string> updated;  ///< names of parameters
  int64_t optimizer_bytes = 0;    ///< of the optimizer's own variables (moments)
};
TrainingNeeds training_needs(const Program& program);

}  // namespace fluid
