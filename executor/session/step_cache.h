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
#include "executor/session/session_options.h"
#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// The result of StepCache::add().
struct AddedSteps {
  bool new_variables = false;
  std::vector<PreparedStep*> fillers;  ///< startup steps, which fill new variables
  std::set<std::string> zeros;         ///< new variables that start at zero, like the memory
};

/// The compiled steps of a program, the table of their variables, and the arena that holds both:
/// [variables | feed slots | output slots | transient].
///
/// Either all steps are bound to this arena, or no step can run: require_runnable() throws then.
class StepCache {
 public:
  StepCache(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
            const SessionOptions& options);

  /// Compiles the steps that are missing, and a startup step for new variables. A variable for
  /// which `has_value` returns true needs no startup step. Then grows the arena if needed and binds
  /// the steps. Calls `before_binding` after all compilation. Throws as Session::prepare() does,
  /// and then adds nothing.
  AddedSteps add(std::span<const Options> wanted,
                 const std::function<bool(const std::string&)>& has_value,
                 const std::function<void()>& before_binding);

  /// The step for these options, or null.
  PreparedStep* find(const Options& wanted) const;
  /// The predict step with the most outputs among those whose feeds are all in `batch`, or null.
  PreparedStep* find_predict(const Batch& batch) const;
  /// The predict step that was prepared for exactly the batch's columns, or null. `all`: the
  /// program's feeds. Does not allocate.
  PreparedStep* find_predict(const Batch& batch, std::span<const std::string> all) const;
  bool has_step_for(Mode mode) const;
  const std::vector<std::unique_ptr<PreparedStep>>& all() const { return steps_; }

  /// Throws in a forked process, and after give_up().
  void require_runnable() const;
  bool is_bound() const { return !broken_; }
  /// Marks all steps as not runnable because of `why`, and throws `why`.
  [[noreturn]] void give_up(const std::exception_ptr& why);
  /// Binds all steps again, for example after the device's tuning choices changed.
  void rebind_steps();
  /// Incremented by each binding, which invalidates the content of the slots.
  uint64_t bindings() const { return bindings_; }

  const ir::Program& recorded() const { return *recorded_; }
  /// The variables that the user recorded, in order, with the types of all steps. Offsets are not
  /// set.
  std::vector<Variable> recorded_variables() const;
  const Variables& variables() const { return variables_; }
  std::byte* address_of(const Variable& variable) const;
  /// Null when the programs have no such variable.
  std::byte* address_of(std::string_view name) const;
  const std::vector<Reported>& reported_variables() const { return reported_; }
  Device& device() const { return *device_; }
  PlaceMemory& memory() const { return *memory_; }
  const SessionOptions& options() const { return options_; }
  double passes_ms() const { return passes_ms_; }

 private:
  using Parts = std::vector<std::unique_ptr<Part>>;
  using Steps = std::vector<std::unique_ptr<PreparedStep>>;
  std::unique_ptr<Part> compile(const Options& options, int64_t batch, const ir::Program& program);
  Part* part_of(const MicroBatch& slice, const Options& step, const ir::Program& program,
                Parts& compiled);
  std::unique_ptr<PreparedStep> compile_step(const Options& options, const ir::Program& program,
                                             Parts& compiled);
  Startup startup(const Variables& variables, const Parts& compiled,
                  const std::function<bool(const std::string&)>& has_value) const;
  void check_memory(const Regions& regions, int64_t batch) const;
  Regions regions_with(const MemoryPlan& plan) const;
  Regions regions_with(const Parts& parts, const Steps& steps, const Variables& variables) const;
  void grow(const Regions& regions);
  void adopt(Parts parts, Steps steps, Variables variables, bool moved);
  using Change = std::function<void()>;
  void or_rebind_steps(
      const Change& change, const Change& undo = [] {});
  bool try_rebind_steps();
  void bind(size_t first_part, size_t first_step);

  std::unique_ptr<ir::Program> recorded_;
  std::unique_ptr<Device> device_;
  SessionOptions options_;
  Variables variables_;
  std::shared_ptr<PlaceMemory> memory_;  ///< shared with views of outputs
  Parts parts_;
  Steps steps_;
  std::vector<Reported> reported_;
  uint64_t bindings_ = 0;
  std::exception_ptr broken_;  ///< why no step can run; null while steps can run
  double passes_ms_ = 0;
};

}  // namespace fluid
