#pragma once

#include <memory>
#include <set>
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

/// The compiled program of a micro-batch, or the compiled startup program, with its memory plan. A
/// step without gradient accumulation is one micro-batch.
struct PlannedProgram {
  std::unique_ptr<ir::Program> program;
  /// Computes the precomputed weights of a predict program; null if there are none.
  std::unique_ptr<ir::Program> weight_program;
  MemoryPlan memory;
  int64_t batch = 0;  ///< number of samples in the micro-batch; 1 for the startup program
};

/// The compiled programs of a step and their memory. A training step includes the programs of all
/// recipes, because a session holds all of these programs.
struct PlannedStep {
  /// One program for each combination of recipe, micro-batch kind (first, middle, last) and
  /// micro-batch size.
  std::vector<PlannedProgram> micro_batches;
  Variables variables;  ///< variables of the step and of the startup program
  RegionSizes regions;  ///< arena regions of a session that runs only this step

  /// The micro-batch with the largest transient memory.
  const PlannedProgram& largest() const;
  int64_t arena_bytes() const { return regions.total_bytes(); }
};

/// Compiles steps with the given session options, and plans the memory of the steps.
class StepPlanner {
 public:
  StepPlanner(const Program& program, const Target& target, const SessionOptions& options)
      : program_(program), target_(target), options_(options) {}
  PlannedStep plan_step(int64_t batch) const;
  /// A planner with the same options, but without mixed precision.
  StepPlanner without_amp() const;

 private:
  void add_step(const Options& step_options, PlannedStep& step) const;
  void add_startup_program(PlannedStep& step) const;
  std::unique_ptr<ir::Program> plan_init_program(const ir::Program& program,
                                                 std::set<std::string> variables,
                                                 PlannedStep& step) const;
  PlannedProgram plan(const ir::Program& program, const std::vector<Pass>& passes,
                      const Options& options) const;

  const Program& program_;
  const Target& target_;
  SessionOptions options_;
};

/// Compares the arena of a mixed-precision step with the arena of the same step in f32.
/// `arena_bytes`: arena size of the mixed-precision step. Returns text such as "f32 needs 20.0 MiB:
/// mixed precision saves 8.0 MiB" or "f32 needs 20.0 MiB: mixed precision needs more, by 8.0 MiB".
std::string f32_comparison_text(const StepPlanner& planner, int64_t batch, int64_t arena_bytes);

/// Returns a note such as "this CPU has no bf16 instructions: mixed precision saves no time".
/// `half`: f16 or bf16. Returns "" if the target is a GPU or has instructions for `half`.
std::string half_instructions_text(const Target& target, DType half);

}  // namespace fluid
