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

/// What comes with steps that were added.
struct AddedSteps {
  bool new_variables = false;
  std::vector<PreparedStep*> fillers;  ///< startup steps, which give new variables first values
  std::set<std::string> zeros;         ///< new variables that begin as zeros, as memory does
};

/// The compiled steps of a program, its variables' table, and the one stretch of memory that both
/// live in: [variables | slots for feeds | slots for outputs | transient].
///
/// All steps are bound to this memory, or none runs any more: require_runnable().
class StepCache {
 public:
  StepCache(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
            const SessionOptions& options);

  /// Compiles the steps that are not there yet, and what fills the variables that are new with
  /// them, but those of which `has_value` says that they get their values elsewhere; grows the
  /// memory where they need more, and binds them. `before_binding` is called once no step has to be
  /// compiled any more. Throws as Session::prepare() does, with nothing added.
  AddedSteps add(std::span<const Options> wanted,
                 const std::function<bool(const std::string&)>& has_value,
                 const std::function<void()>& before_binding);

  /// The step for these, or null.
  PreparedStep* find(const Options& wanted) const;
  /// The predict step that uses most of the batch's columns and needs no other, or null.
  PreparedStep* find_predict(const Batch& batch) const;
  /// The predict step that was prepared for exactly the batch's columns, or null. `all`: the
  /// program's feeds. Does not allocate.
  PreparedStep* find_predict(const Batch& batch, std::span<const std::string> all) const;
  bool has_step_for(Mode mode) const;
  const std::vector<std::unique_ptr<PreparedStep>>& all() const { return steps_; }

  /// Throws where no step runs any more: in a fork, and because of what was given up for.
  void require_runnable() const;
  bool is_bound() const { return !broken_; }
  /// From now on no step runs, because of `why`, which it throws.
  [[noreturn]] void give_up(const std::exception_ptr& why);
  /// Binds all steps anew, as where their device has learnt something.
  void bind_again();
  /// Another number each time that steps were bound: what the slots held before is gone.
  uint64_t bindings() const { return bindings_; }

  const ir::Program& recorded() const { return *recorded_; }
  /// The variables that were recorded, in order, as all steps have them; without their places.
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
  Part* part_of(const SliceOfBatch& slice, const Options& step, const ir::Program& program,
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
  void or_bind_again(
      const Change& change, const Change& undo = [] {});
  bool binds_again();
  void bind(size_t first_part, size_t first_step);

  std::unique_ptr<ir::Program> recorded_;
  std::unique_ptr<Device> device_;
  SessionOptions options_;
  Variables variables_;
  std::shared_ptr<PlaceMemory> memory_;  ///< shared with outputs' views; goes after who is bound
  Parts parts_;
  Steps steps_;
  std::vector<Reported> reported_;
  uint64_t bindings_ = 0;
  std::exception_ptr broken_;  ///< why no step runs any more
  double passes_ms_ = 0;
};

}  // namespace fluid
