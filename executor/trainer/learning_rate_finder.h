#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "frontend/readers/reader.h"

namespace fluid {

inline constexpr int64_t kFewestLearningRates = 10;  ///< minimum number of steps

/// Options of find_learning_rate(), a learning rate range test (Smith, "Cyclical learning rates for
/// training neural networks", 2017).
struct LearningRateFinderOptions {
  std::string recipe = {};         ///< name of the recipe that trains; empty: the only one
  double first = 1e-7, last = 10;  ///< learning rates of the first and of the last step; > 0
  int64_t steps = 100;             ///< training steps; at least kFewestLearningRates
  double smoothing = 0.9;          ///< weight of earlier losses in the smoothed loss, in [0, 1)
  /// Stops when the smoothed loss is not finite, or larger than this factor times the minimum so
  /// far.
  double divergence = 4;
};

/// A step of a learning rate range test.
struct LearningRatePoint {
  double rate = 0;      ///< learning rate of the step
  double loss = 0;      ///< loss of the step's batch, before the update
  double smoothed = 0;  ///< bias-corrected exponential moving average of the losses
};

/// The result of a learning rate range test.
struct LearningRateCurve {
  std::vector<LearningRatePoint> points;
  /// Rate at which the smoothed loss falls most steeply over log(rate). Ignores the first tenth of
  /// the points and the points after the minimum. Absent if the loss never falls.
  std::optional<double> suggestion = {};
};

/// Trains on the batches of `data`, epoch after epoch, while the learning rate grows exponentially.
/// Then restores the variables. `program`: the program of `executor`, with the recipe's loss as an
/// output and its schedule `manual`. Collective; returns the same curve on every rank. Throws
/// UserError if the program or the settings do not fit.
LearningRateCurve find_learning_rate(Executor& executor, const Program& program, Reader& data,
                                     const LearningRateFinderOptions& settings = {});

/// The suggestion for a curve; see LearningRateCurve.
std::optional<double> suggested_learning_rate(const std::vector<LearningRatePoint>& points);

}  // namespace fluid
