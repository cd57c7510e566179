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

/// Scalar outputs as (name, value) pairs.
using NamedScalars = std::vector<std::pair<std::string, double>>;

/// Means of the scalar outputs of a program over several steps. For a metric, accumulates its
/// statistics, so that its value over all samples is exact. Other scalars are weighted by the
/// number of samples in the step. The result is exact for a scalar that is a mean over samples. For
/// a sum over samples, the result depends on the batch size. Ignores other outputs with more than
/// one element.
class RunningMeans {
 public:
  using OutputStatistics = TrainingState::OutputStatistics;

  /// `program`: the program whose steps are added; must outlive this object.
  explicit RunningMeans(const ir::Program& program) : program_(&program) {}

  /// Adds the scalar outputs of a step with `samples` samples.
  void add(const OutputViews& outputs, int64_t samples);
  /// Like add(), but the next call of add_deferred() or flush() reads the outputs. The caller can
  /// therefore start the next step before the host waits for this step.
  void add_deferred(const OutputViews& outputs, int64_t samples);
  void flush();
  NamedScalars values() const;
  std::string text() const;  ///< formats values(): "loss 0.1234  accuracy 0.9876"
  void clear() { statistics_.clear(); }
  /// Collective. Merges the ranks' statistics, each of which covers the samples of one rank.
  void all_reduce(ProcessGroup& group);
  /// Collective. Like values(), but first all-gathers the rows of metrics that store one row per
  /// sample, such as roc_auc. For training steps: their other statistics already cover all ranks.
  NamedScalars values_with_gathered_rows(ProcessGroup& group) const;

  /// Collective. Statistics of the outputs of training steps over the samples of all ranks, to
  /// store in TrainingState::output_statistics.
  std::vector<OutputStatistics> gathered_statistics(ProcessGroup& group) const;
  /// Restores the result of gathered_statistics() on rank `rank`. Rank 0 holds the rows of all
  /// ranks, so the next run may have another number of ranks.
  void restore(std::vector<OutputStatistics> statistics, int rank);

 private:
  std::vector<double>& statistics_of(const std::string& output);

  const ir::Program* program_;
  std::vector<OutputStatistics> statistics_;
  std::optional<std::pair<OutputViews, int64_t>> deferred_;
};

/// Formats a scalar: "0.1234", or "1.234e-05" for very small and very large values. A NaN of
/// either sign gives "nan".
std::string format_scalar(double value);

/// Returns `value`, with the sign bit cleared if `value` is NaN.
double clear_nan_sign(double value);

/// Returns the values of the scalar outputs of one step.
NamedScalars scalar_outputs(const OutputViews& outputs);

}  // namespace fluid
