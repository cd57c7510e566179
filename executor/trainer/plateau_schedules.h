#pragma once

#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/trainer/fit_options.h"
#include "executor/trainer/recipe_cycle.h"
#include "frontend/program.h"

namespace fluid {

/// Adjusts the learning rates of the recipes with schedule Plateau after each epoch.
class PlateauSchedules {
 public:
  /// `validates`: whether the schedules monitor the validation data, not the training data. Throws
  /// UserError if a recipe monitors a metric that is not a scalar output of `program`, or minimizes
  /// one whose larger values are better. Also throws if `validates` is false and no recipe of
  /// `cycle` computes the metric.
  PlateauSchedules(const Program& program, const RecipeCycle& cycle, bool validates);

  /// Passes the metrics of `epoch` to `executor`. Skips a metric that no step of the epoch
  /// computed. Returns a message for each learning rate that this call reduces.
  std::vector<std::string> update(const EpochEvent& epoch, Executor& executor) const;

 private:
  /// A recipe with schedule Plateau.
  struct PlateauRecipe {
    std::string recipe;
    std::string metric;  ///< name of an output
    bool maximizes = false;
  };
  std::vector<PlateauRecipe> plateau_recipes_;
  bool validates_;
};

}  // namespace fluid
