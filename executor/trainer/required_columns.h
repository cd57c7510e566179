#pragma once

#include "executor/trainer/recipe_cycle.h"
#include "frontend/program.h"
#include "frontend/readers/sample_data.h"

namespace fluid {

/// Throws UserError if `data` has no column for a feed that a training step of `cycle` reads.
/// Compiles nothing.
void check_training_columns(const Program& program, const RecipeCycle& cycle,
                            const SampleData& data);
/// Throws UserError if `data` has no column for a feed that an output depends on.
void check_evaluation_columns(const Program& program, const SampleData& data);

}  // namespace fluid
