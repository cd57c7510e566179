#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/device/device.h"
#include "executor/session/prepared_step.h"
#include "executor/session/program_cache.h"
#include "executor/session/session_options.h"
#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// A step that computes precomputed weights.
struct WeightStep {
  PreparedStep* step = nullptr;
  StateRange range = {};  ///< see add_weight_variables()
};

/// Result of StepCache::add_steps().
struct AddedSteps {
  bool has_new_variables = false;
  std::vector<PreparedStep*> startup_steps;  ///< startup steps that initialise the new variables
  /// Steps that compute the precomputed weights of the added predict steps.
  std::vector<WeightStep> weight_steps;
  /// Names of the new variables that are initialised with zeros. These variables need no startup
  /// step, because the arena is zeroed.
  std::set<std::string> zero_initialised;
};

/// The compiled steps of a program, and the arena that holds the variables and the buffers of all
/// steps: [variables | feed slots | output slots | transient].
///
/// Either all steps are bound to this arena, or no step can run and require_runnable() throws.
class StepCache {
 public:
  StepCache(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
            const SessionOptions& options);

  /// Compiles the missing steps among `wanted`, and a startup step for new variables. The
  /// startup step skips variables for which `has_value` is true. Then calls `before_binding`, grows
  /// the arena if needed, and binds the steps. On an error, throws as Session::prepare() does and
  /// adds nothing.
  AddedSteps add_steps(std::span<const Options> wanted,
                       const std::function<bool(const std::string&)>& has_value,
                       const std::function<void()>& before_binding);

  /// Returns the step for these options, or null. `wanted.global_batch` matters only for training
  /// steps of programs with sparse parameters; 0 accepts any global batch.
  PreparedStep* find(const Options& wanted) const;
  /// Searches the predict steps for the size of `batch` and for `length` whose feeds are all
  /// columns of `batch`. Returns the step with the most outputs, or null.
  PreparedStep* find_predict(const Batch& batch, int64_t length) const;
  /// Returns the predict step for `length` whose feeds are exactly the columns of `batch`, or
  /// null. `all_feeds`: feeds of the program. Does not allocate.
  PreparedStep* find_predict(const Batch& batch, int64_t length,
                             std::span<const std::string> all_feeds) const;
  bool has_step_for(Mode mode) const;
  const std::vector<std::unique_ptr<PreparedStep>>& all() const { return steps_; }

  /// Throws if no step can run: UserError in a forked child process, and `why` after
  /// fail_permanently(why).
  void require_runnable() const;
  bool is_bound() const { return !failure_; }
  /// Marks all steps as not runnable because of error `why`, and throws `why`.
  [[noreturn]] void fail_permanently(const std::exception_ptr& why);
  /// Compiles and binds the programs of `step`, a WeightStep, that have no executable yet.
  /// Calls `before_binding` before it binds one.
  void require_executable(const PreparedStep& step, const std::function<void()>& before_binding);
  /// Binds all steps again, for example after the device's tuning choices changed.
  void rebind_steps();
  /// Returns the number of times that steps were bound to the arena. Binding invalidates the
  /// content of the slots.
  uint64_t num_bindings() const { return num_bindings_; }

  const ir::Program& recorded_program() const { return *recorded_; }
  /// The variables that the recorded program declares, in declaration order. Each has the same
  /// dtype in every step. Their offsets are not set.
  std::vector<Variable> recorded_variables() const;
  const Variables& variables() const { return variables_; }
  std::byte* address_of(const Variable& variable) const;
  /// Returns the address of variable `name`; null if the programs have no such variable.
  std::byte* address_of(std::string_view name) const;
  Device& device() const { return *device_; }
  PlaceMemory& memory() const { return *memory_; }
  const SessionOptions& options() const { return options_; }
  /// Adds the statistics of the passes to `report`.
  void report_passes(CompileReport& report) const;

 private:
  using Programs = std::vector<std::unique_ptr<CompiledProgram>>;
  using Steps = std::vector<std::unique_ptr<PreparedStep>>;
  AddedSteps compile_and_bind(std::span<const Options> wanted,
                              const std::function<bool(const std::string&)>& has_value,
                              const std::function<void()>& before_binding);
  /// A program before the passes.
  struct Source {
    const ir::Program& program;
    std::string identity;  ///< see ProgramCache::key_of()
  };
  std::unique_ptr<CompiledProgram> compile(const Options& options, int64_t batch,
                                           const Source& source);
  bool read_cached(int64_t batch, CompiledProgram& entry);
  void plan_memory(int64_t batch, CompiledProgram& entry);
  bool has_equal_global_batch(const Options& options, const Options& wanted) const;
  PreparedStep* find_among(const Steps& steps, const Options& wanted) const;
  CompiledProgram* find_or_compile(const MicroBatch& micro_batch, const Options& step_options,
                                   const Source& source, Programs& compiled);
  std::unique_ptr<PreparedStep> compile_step(const Options& options, const Source& source,
                                             Programs& compiled);
  PreparedStep* compile_store_step(const Source& source, std::set<std::string> variables,
                                   Programs& compiled, Steps& steps);
  std::vector<WeightStep> compile_weight_steps(Programs& compiled, Steps& steps);
  bool maps_weights(const CompiledProgram& entry) const;
  bool may_stay_uncompiled(const CompiledProgram& entry) const;
  StartupPlan plan_startup(const Variables& variables, const Programs& compiled,
                           const std::function<bool(const std::string&)>& has_value) const;
  void check_memory(const RegionSizes& regions, int64_t batch) const;
  RegionSizes required_regions(const MemoryPlan& plan) const;
  RegionSizes required_regions(const Programs& programs, const Steps& steps,
                               const Variables& variables) const;
  void grow_memory(const RegionSizes& regions);
  void add_and_bind(Programs programs, Steps steps, Variables variables, bool memory_moved);
  using Change = std::function<void()>;
  void run_or_rebind(
      const Change& change, const Change& undo = [] {});
  bool try_rebind_steps();
  void bind(size_t first_program, size_t first_step);

  std::unique_ptr<ir::Program> recorded_;
  bool has_sparse_parameters_;
  std::unique_ptr<Device> device_;
  SessionOptions options_;
  Variables variables_;
  std::shared_ptr<PlaceMemory> memory_;  ///< shared with the output views that users hold
  Programs programs_;
  Steps steps_;
  uint64_t num_bindings_ = 0;
  std::exception_ptr failure_;  ///< error after which no step can run; null while steps can run
  ProgramCache program_cache_;
  std::string recorded_identity_;  ///< Source::identity of the recorded program
  int programs_passed_ = 0;        ///< CompileReport::programs
  int programs_cached_ = 0;        ///< CompileReport::cached_programs
  double passes_ms_ = 0;
};

}  // namespace fluid
