#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/session/outputs.h"

namespace fluid {

class ProcessGroup;

/// Scalars by name: metrics, and means over samples.
using NamedScalars = std::vector<std::pair<std::string, double>>;

/// The scalar outputs of a program, accumulated over steps. A metric adds its sums and weights, so
/// its value is exact over all samples. Another scalar is averaged, and each step weighs as much as
/// its samples: a mean over samples is exact as well, but a sum depends on the batch size. Outputs
/// of more than one element are left out.
class RunningMeans {
 public:
  using Sum = TrainingState::Sum;

  void add(const OutputViews& outputs, int64_t samples);
  /// add(), delayed until the next call of add_late() or flush(): a GPU gets the next step before
  /// the host waits for this one.
  void add_late(const OutputViews& outputs, int64_t samples);
  void flush();
  NamedScalars values() const;
  std::string text() const;  ///< "loss 0.1234  accuracy 0.9876"
  void clear() { sums_.clear(); }
  /// Collective. Sums over all ranks; `names` are the program's outputs, in the same order on each.
  void all_reduce(ProcessGroup& group, const std::vector<std::string>& names);

  const std::vector<Sum>& sums() const { return sums_; }  ///< for a checkpoint
  void set_sums(std::vector<Sum> sums) { sums_ = std::move(sums); }

 private:
  std::vector<Sum> sums_;
  std::optional<std::pair<OutputViews, int64_t>> late_;
};

/// "0.1234", or with an exponent for very small and very large values; "nan" without a sign.
std::string scalar_text(double value);

/// `value`, with the sign of a nan cleared.
double unsigned_nan(double value);

/// The scalar outputs of one step.
NamedScalars scalars(const OutputViews& outputs);

}  // namespace fluid
