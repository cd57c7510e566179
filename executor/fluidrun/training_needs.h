#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "frontend/program.h"

namespace fluid {

/// What training a program takes besides the program itself; nothing where it is not trained.
struct TrainingNeeds {
  /// Ids of the recorded ops whose results the step keeps for the backward pass: computed forward,
  /// read backward.
  std::set<int64_t> saved_ops;
  std::set<std::string> updated;  ///< names of parameters
  int64_t optimizer_bytes = 0;    ///< of the optimizer's own variables (moments)
};
TrainingNeeds training_needs(const Program& program);

}  // namespace fluid
