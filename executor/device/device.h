#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/compile_report.h"
#include "executor/device/limits.h"
#include "executor/device/place_memory.h"
#include "executor/device/step_times.h"
#include "executor/device/variables.h"
#include "ir/error.h"
#include "passes/memory_plan.h"
#include "passes/options.h"
#include "passes/target.h"

namespace fluid {

/// The slots that a step uses, 0 or 1 each. `feeds` is 0 when memory has one feed slot. Two steps
/// may read one feed slot and write different output slots, so an unchanged batch is copied only
/// once.
struct Slots {
  int feeds = 0;
  int outputs = 0;
  bool new_feeds = true;  ///< the host has written the feed slot since the last step that used it
};
/// All combinations of slots that steps on `memory` may use.
inline std::span<const Slots> all_slots(const Memory& memory) {
  static constexpr std::array kAll = {Slots{0, 0}, Slots{0, 1}, Slots{1, 0}, Slots{1, 1}};
  return std::span(kAll).first(memory.slots.feeds[1] == nullptr ? 2 : 4);
}
/// Index of `slots` in all_slots().
inline size_t index_of(Slots slots) { return static_cast<size_t>(2 * slots.feeds + slots.outputs); }

/// Outcome of a step. A step that is not good() has changed no variable: all data checks run before
/// the first write to a variable (passes/schedule.cpp).
struct Status {
  const ir::Op* op = nullptr;  ///< the op that rejected its data, or null
  int argument = 0;            ///< number of the operand that was read out of range
  int64_t index = 0;           ///< the index that was out of range
  bool good() const { return op == nullptr; }
};

/// Called before (`done` false) and after (`done` true) the kernel of `op`, with the addresses of
/// its operands and then its results. Returning false ends the step.
using Watch = std::function<bool(const ir::Op& op, void* const* buffers, bool done)>;

/// Thrown by bind() when a library cannot run a kernel that it claimed. The target no longer claims
/// the kernel, so compiling the program again generates code for it.
class LibraryRejection : public DeviceError {
 public:
  /// `what`: the op and the reason, in one line.
  explicit LibraryRejection(const std::string& what)
      : DeviceError(what + "; start the program again: code is generated for it then"),
        rejected_(what) {}
  const std::string& refused() const { return rejected_; }

 private:
  std::string rejected_;
};

/// A program compiled for one batch size: a flat list of calls.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Announces that steps will be timed. Must precede bind().
  virtual void expect_times() {}
  /// Drops all references to the bound memory, which is about to be freed. Requires that no step is
  /// in flight. bind() must follow before the next step.
  virtual void unbind() {}
  /// Binds the call list to addresses. May overwrite slots and transient memory. Throws
  /// LibraryRejection when a library cannot run a kernel that it claimed; the program then has to
  /// be compiled again.
  virtual void bind(const Memory& memory, const Variables& variables) = 0;
  /// Starts a step on the given slots, after all steps started before on this memory. Returns the
  /// step's status, or nullopt when the step runs asynchronously and finish() will return the
  /// status. The host must not touch the slots of an asynchronous step before finish(). Allocates
  /// nothing.
  ///
  /// `times`, if not null, requires expect_times() and makes the step synchronous. It receives one
  /// entry in `times->calls` for each of calls(), in clock_ns() time.
  ///
  /// After a DeviceError, also from finish(), variables may be partly written unless the message
  /// says otherwise. The next step starts normally.
  ///
  /// Later steps may already be in flight when an asynchronous step is rejected. Steps of programs
  /// with data checks then change no variable either, until PlaceMemory::allow_updates(). Programs
  /// without data checks ignore the rejection. Ignoring it is safe: a training program has every
  /// data check of its eval and predict programs.
  virtual std::optional<Status> start(Slots slots, RunTimes* times) = 0;
  /// Waits for the last asynchronous step with output slot `outputs` and returns its status.
  virtual Status finish(int outputs) = 0;
  /// Runs a step synchronously.
  Status run(Slots slots, RunTimes* times) {
    const std::optional<Status> ended = start(slots, times);
    return ended ? *ended : finish(slots.outputs);
  }
  /// The ops of the call list, in execution order.
  virtual std::vector<const ir::Op*> calls() const = 0;
  /// Sets the callback of the next runs; null removes it. A watched run skips collectives, and
  /// every op that depends on a collective's result.
  virtual void watch(Watch watch) = 0;
};

/// A place that runs programs.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Target& target() const = 0;
  virtual int threads() const = 0;  ///< host threads, used for copies
  /// Allocates the memory of a session. Throws DeviceError when there is too little.
  virtual std::shared_ptr<PlaceMemory> memory(const Regions& regions) const = 0;
  /// Compiles the main graph of a program that has passed the whole pipeline. `final_program` and
  /// `plan` must outlive the result. Returns null when a library has no algorithm for an op that
  /// its kernel claimed. The target then no longer claims the op, and the pipeline has to run
  /// again.
  virtual std::unique_ptr<Executable> build(const ir::Program& final_program,
                                            const MemoryPlan& plan, const Options& options) = 0;
  /// Collective. Broadcasts rank 0's `bytes` at address `at` of the session's memory.
  virtual void broadcast(std::byte* at, int64_t bytes) = 0;
  virtual CompileReport report() const = 0;
  /// The choices made by timing for the programs built so far: key to choice, as text.
  virtual std::map<std::string, std::string> decisions() const { return {}; }
  /// Adopts the choices that all ranks agreed on. Returns whether any choice changed; then all
  /// executables must be bound again.
  virtual bool adopt_tuning_record(const std::map<std::string, std::string>&) { return false; }
  /// Device memory outside the arenas: owner and measured bytes. Empty for the host.
  virtual std::vector<std::pair<std::string, int64_t>> outside() const { return {}; }
  /// Bytes of pinned host memory.
  virtual int64_t pinned() const { return 0; }
  /// Peak rates of the place. May take a moment to measure them.
  virtual Limits limits() const = 0;
};

}  // namespace fluid
