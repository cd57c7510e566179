#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/tensor.h"

namespace fluid {

/// Samples in memory: named columns whose first dimension counts the samples, the same in all.
struct Dataset {
  std::vector<std::pair<std::string, Tensor>> columns;

  int64_t samples() const { return columns.empty() ? 0 : columns.front().second.shape().at(0); }
  const Tensor* find(std::string_view name) const;  ///< null when absent
  int64_t bytes() const;
  /// A copy of the first `n` samples; all when there are fewer.
  Dataset first(int64_t n) const;
};

}  // namespace fluid
