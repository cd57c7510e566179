#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/variables.h"
#include "frontend/program.h"
#include "passes/memory_plan.h"
#include "passes/options.h"
#include "passes/target.h"

namespace fluid {

/// A step as it will run, or a part of one.
struct PlannedPart {
  std::unique_ptr<ir::Program> program;
  MemoryPlan memory;
  int64_t batch = 0;  ///< samples
};

struct PlannedStep {
  std::vector<PlannedPart> parts;
  Variables variables;  ///< of all parts, and of what initialises them
  int64_t slot = 0;     ///< bytes
  int64_t initial = 0;  ///< transient bytes of giving the variables their first values

  /// The one that needs most.
  const PlannedPart& largest() const;
  int64_t transient() const;
  /// What a session that runs this step, and no other, allocates.
  int64_t total() const { return variables.bytes() + 2 * slot + transient(); }
};

/// Plans steps whose samples go through in `slices`.
class StepPlanner {
 public:
  StepPlanner(const Program& program, const Target& target, Options options, int64_t slices)
      : program_(program), target_(target), options_(std::move(options)), slices_(slices) {}
  PlannedStep at(int64_t batch) const;
  /// The same without mixed precision.
  StepPlanner in_f32() const;

 private:
  PlannedPart plan(const Options& options) const;

  const Program& program_;
  const Target& target_;
  Options options_;
  int64_t slices_;
};

/// "f32 needs 20.0 MiB: mixed precision saves 8.0 MiB", or that it needs more.
std::string compared_to_f32(const StepPlanner& planner, int64_t batch, int64_t total);

}  // namespace fluid
