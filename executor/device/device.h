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
#include "executor/device/peak_rates.h"
#include "executor/device/place_memory.h"
#include "executor/device/step_times.h"
#include "executor/device/variables.h"
#include "ir/error.h"
#include "passes/memory_plan.h"
#include "passes/options.h"
#include "passes/target.h"

namespace fluid {

/// Indices of the feed slot and the output slot of a step, 0 or 1 each. Memory with a single feed
/// slot uses index 0. Two steps in flight may use the same feed slot, so an unchanged batch is
/// copied only once. Two steps in flight must use different output slots.
struct Slots {
  int feeds = 0;
  int outputs = 0;
  /// Whether the host has written the feed slot since the last step that used the slot.
  bool new_feeds = true;
};
/// Returns all slot combinations that a step on `memory` may use.
inline std::span<const Slots> all_slots(const MemoryAddresses& memory) {
  static constexpr std::array kAll = {Slots{0, 0}, Slots{0, 1}, Slots{1, 0}, Slots{1, 1}};
  return std::span(kAll).first(memory.slots.feeds[1] == nullptr ? 2 : 4);
}
/// Returns the index of `slots` in all_slots().
inline size_t index_of(Slots slots) { return static_cast<size_t>(2 * slots.feeds + slots.outputs); }

/// Outcome of a step. If good() is false, the step has changed no variable: all data checks run
/// before the first write to a variable (passes/schedule.cpp).
struct StepStatus {
  const ir::Op* op = nullptr;  ///< the op whose data check failed; null if none
  int operand = 0;             ///< index of the operand that was accessed out of range
  int64_t index = 0;           ///< the out-of-range index
  bool good() const { return op == nullptr; }
};

/// Callback that runs before (`done` is false) and after (`done` is true) the kernel of `op`.
/// `buffers`: addresses of the operands, followed by the addresses of the results. Returns false to
/// end the step.
using KernelObserver = std::function<bool(const ir::Op& op, void* const* buffers, bool done)>;

/// Thrown by Executable::bind() when a library fails to prepare a kernel that the target had
/// assigned to the library. If the program is compiled again, a generated kernel replaces the
/// library kernel.
class LibraryPreparationError : public DeviceError {
 public:
  /// `what`: the op and the reason, in one line.
  explicit LibraryPreparationError(const std::string& what)
      : DeviceError(what + "; start the program again: code is generated for it then"),
        reason_(what) {}
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

/// Describes one call of an executable.
struct ExecutableCall {
  const ir::Op* op = nullptr;
  int64_t steps = 1;  ///< number of times that a scan repeats the call; 1 outside of scans
};

/// A program compiled for one batch size: a flat list of calls, which run in order.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Enables timing of steps. Must be called before bind().
  virtual void enable_timing() {}
  /// Drops all references to the bound memory, which may then be freed. No step may be in flight.
  /// bind() must be called before the next step.
  virtual void unbind() {}
  /// Binds the call list to addresses. May overwrite slots and transient memory. Throws
  /// LibraryPreparationError when a library fails to prepare one of its kernels. The program must
  /// then be compiled again.
  virtual void bind(const MemoryAddresses& memory, const Variables& variables) = 0;
  /// Starts a step on the given slots, ordered after all earlier steps on this memory. Returns the
  /// step's status, or nullopt if the step runs asynchronously. If the step runs asynchronously,
  /// finish() returns the status, and the host must not touch the slots before finish(). Allocates
  /// nothing.
  ///
  /// If `times` is not null, stores the times of the step in `times`, as values of clock_ns().
  /// `times->calls` must have one entry for each of calls(). A non-null `times` requires
  /// enable_timing() and makes the step synchronous.
  ///
  /// A DeviceError of start() or finish() may leave variables partly written, unless the message
  /// says otherwise. The next step starts normally.
  ///
  /// When an asynchronous step is rejected, later steps may already be in flight. Later steps of
  /// programs with data checks change no variable until PlaceMemory::clear_rejection_flag().
  /// Programs without data checks run normally. This is safe, because a training program contains
  /// every data check of its eval and predict programs. So a training step after a rejected eval or
  /// predict step changes no variable either.
  virtual std::optional<StepStatus> start(Slots slots, RunTimes* times) = 0;
  /// Waits for the last asynchronous step that used output slot `output_slot`. Returns its status.
  virtual StepStatus finish(int output_slot) = 0;
  /// Runs a step synchronously.
  StepStatus run(Slots slots, RunTimes* times) {
    const std::optional<StepStatus> ended = start(slots, times);
    return ended ? *ended : finish(slots.outputs);
  }
  /// Returns text that determines the bits of a step's results, for given values and buffers: the
  /// kernels, the libraries and the number of threads. Equal in all processes of this build. Empty
  /// if the place does not know it.
  virtual std::string fingerprint() const { return {}; }
  /// Returns one element per call, in execution order.
  virtual std::vector<ExecutableCall> calls() const = 0;
  /// Sets the callback for later runs; null removes the callback. A run with a callback skips
  /// collectives and all ops that depend on their results.
  virtual void set_observer(KernelObserver observer) = 0;
};

/// A backend: compiles programs for a place and runs them.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Target& target() const = 0;
  virtual int threads() const = 0;  ///< number of host threads for copying feeds
  /// Allocates the memory of a session. Throws DeviceError when the place has too little memory.
  virtual std::shared_ptr<PlaceMemory> allocate_memory(const RegionSizes& regions) const = 0;
  /// Compiles the main graph of a program that has been through the whole pass pipeline.
  /// `final_program` and `plan` must outlive the result. Returns null when a library has no
  /// algorithm for an op that the target assigned to the library. Afterwards the target no longer
  /// assigns the op to this library, and the caller must run the pipeline again.
  virtual std::unique_ptr<Executable> compile(const ir::Program& final_program,
                                              const MemoryPlan& plan, const Options& options) = 0;
  /// Collective. Broadcasts `bytes` bytes of the session's memory at address `at` from rank 0.
  virtual void broadcast(std::byte* at, int64_t bytes) = 0;
  virtual CompileReport report() const = 0;
  /// Returns text that determines what the passes and compile() make of a program with given
  /// options. Equal in all processes of this build that make the same of it. Empty if the place
  /// does not know it, for example because it times kernels. A place with such a text compiles
  /// every program that has been through the passes: compile() and Executable::bind() do not
  /// ask for another one.
  virtual std::string fingerprint() const { return {}; }
  /// Returns the choices that depend on timing, as a map from key to value. They are the algorithms
  /// chosen for the programs compiled so far, and the measured rates that the cost model uses.
  virtual std::map<std::string, std::string> tuning_record() const { return {}; }
  /// Replaces tuning choices by the choices that all ranks agreed on. Returns whether a choice
  /// changed; after a change, all executables must be bound again.
  virtual bool adopt_tuning_record(const std::map<std::string, std::string>&) { return false; }
  /// Lists the device memory in use outside the arenas, as pairs of owner and measured size in
  /// bytes. Empty for the CPU.
  virtual std::vector<std::pair<std::string, int64_t>> memory_outside_arenas() const { return {}; }
  /// Returns the bytes of pinned host memory in use.
  virtual int64_t pinned_bytes() const { return 0; }
  /// Peak FLOP/s and memory bandwidth of the place. The first call may run a benchmark.
  virtual PeakRates peak_rates() const = 0;
};

}  // namespace fluid
