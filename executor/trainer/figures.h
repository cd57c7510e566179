#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/executor.h"
#include "executor/session/outputs.h"

namespace fluid {

/// The figures of an epoch out of those of its steps. A metric adds its sums and weights, so it is
/// exact over all samples; another scalar is averaged, each step weighted by its samples: so a mean
/// over samples is exact as well, but a sum depends on the batch. Outputs of more than one element
/// are left out.
class Figures {
 public:
  using Sum = TrainingState::Sum;

  void add(const Outputs& outputs, int64_t samples);
  /// The same when the next step was begun, or catch_up() is called: a place that goes on with a
  /// step by itself is not waited for before it has the next.
  void add_late(const Outputs& outputs, int64_t samples);
  void catch_up();
  std::vector<std::pair<std::string, double>> values() const;
  std::string text() const;  ///< "loss 0.1234  accuracy 0.9876"
  void clear() { sums_.clear(); }
  /// Makes them the figures of all processes, each of which had samples of its own. `names`: of the
  /// outputs, the same in all. A call of all ranks.
  void add_up(Executor& executor, const std::vector<std::string>& names);

  const std::vector<Sum>& sums() const { return sums_; }  ///< for a checkpoint
  void set_sums(std::vector<Sum> sums) { sums_ = std::move(sums); }

 private:
  std::vector<Sum> sums_;
  std::optional<std::pair<Outputs, int64_t>> late_;
};

/// "0.1234", or with an exponent where that would say little; "nan" without a sign.
std::string figure_text(double value);

/// The same number, but nan without a sign.
double unsigned_nan(double value);

/// The scalars of one step.
std::vector<std::pair<std::string, double>> scalars(const Outputs& outputs);

}  // namespace fluid
