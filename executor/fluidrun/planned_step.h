#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/device/place_memory.h"
#include "executor/device/variables.h"
#include "executor/session/session.h"
#include "frontend/program.h"
#include "passes/memory_plan.h"
#include "passes/options.h"
#include "passes/pass.h"
#include "passes/target.h"

namespace fluid {

/// A compiled step, or one of its micro-batches.
struct PlannedProgram {
  std::unique_ptr<ir::Program> program;
  MemoryPlan memory;
  int64_t batch = 0;  ///< samples
};

struct PlannedStep {
  std::vector<PlannedProgram> parts;
  Variables variables;  ///< of all parts, and of the startup program
  Regions regions;      ///< of a session that runs only this step

  /// The part with the largest transient memory.
  const PlannedProgram& largest() const;
  int64_t total() const { return regions.total(); }
};

/// Plans the steps of a session with these options, in the mode of its passes.
class StepPlanner {
 public:
  StepPlanner(const Program& program, const Target& target, const SessionOptions& how)
      : program_(program), target_(target), options_(how) {}
  PlannedStep at(int64_t batch) const;
  /// A planner without mixed precision.
  StepPlanner in_f32() const;

 private:
  void add_startup(PlannedStep& step) const;
  PlannedProgram plan(const ir::Program& program, const std::vector<Pass>& passes,
                      const Options& options) const;

  const Program& program_;
  const Target& target_;
  SessionOptions options_;
};

/// "f32 needs 20.0 MiB: mixed precision saves 8.0 MiB", or "needs more, by 8.0 MiB".
std::string compared_to_f32(const StepPlanner& planner, int64_t batch, int64_t total);

}  // namespace fluid
