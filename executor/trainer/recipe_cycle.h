#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/trainer/fit_options.h"
#include "frontend/program.h"

namespace fluid {

/// A recipe that Trainer::fit() trains.
struct FitRecipe {
  std::string name;   ///< empty for the only recipe of a program, if it has no name
  int64_t steps = 1;  ///< consecutive steps in a cycle
  std::string loss;   ///< name of the output that holds the loss; empty: none
  double lr = 0;      ///< the optimizer's option `lr`
};

/// The cycle of steps that training repeats.
class RecipeCycle {
 public:
  /// Throws UserError if `program` has no recipe, or has several and `steps` is empty. Also throws
  /// for an unknown or repeated recipe in `steps`, for a recipe without a trainable parameter, and
  /// for a number of steps below 1.
  RecipeCycle(const Program& program, const std::vector<RecipeSteps>& steps);

  const std::vector<FitRecipe>& recipes() const { return recipes_; }
  int64_t length() const { return length_; }  ///< number of steps of a cycle
  /// Returns the index in recipes() of the recipe that step `step` trains. Steps are counted from 0
  /// over all epochs.
  size_t recipe_index(int64_t step) const;
  /// Number of steps of recipe recipes()[index] among the first `steps` steps.
  int64_t steps_of(size_t index, int64_t steps) const;
  /// Number of steps of recipe recipes()[index] when training that continues from `from` has run
  /// `steps` steps in all. Earlier runs may have had another cycle (TrainingState::recipe_steps).
  int64_t steps_of(size_t index, int64_t steps, const TrainingState& from) const;
  /// Name of the output that training minimizes; empty if the loss is not an output, or with
  /// several recipes.
  std::string loss() const { return recipes_.size() == 1 ? recipes_.front().loss : ""; }
  /// The cycle as text, such as "discriminator:2,generator:1".
  std::string text() const;

 private:
  std::vector<FitRecipe> recipes_;
  int64_t length_ = 0;  ///< steps of a cycle
};

}  // namespace fluid
