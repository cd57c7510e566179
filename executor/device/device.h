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

/// Which slots a step uses, each 0 or 1; where there is one slot for feeds, that. Two steps may
/// read the same feeds and write different outputs: data that stays the same is copied in once.
struct Slots {
  int feeds = 0;
  int outputs = 0;
  bool new_feeds = true;  ///< the host has written feeds since the slot was used last
};
/// That steps on this memory use.
inline std::span<const Slots> all_slots(const Memory& memory) {
  static constexpr std::array kAll = {Slots{0, 0}, Slots{0, 1}, Slots{1, 0}, Slots{1, 1}};
  return std::span(kAll).first(memory.slots.feeds[1] == nullptr ? 2 : 4);
}
/// In all_slots().
inline size_t index_of(Slots slots) { return static_cast<size_t>(2 * slots.feeds + slots.outputs); }

/// How a step ended. When it is not good, no variable has changed: what may refuse data comes
/// before the first write to a variable (passes/schedule.cpp).
struct Status {
  const ir::Op* op = nullptr;  ///< the op that met bad data, or null
  int argument = 0;            ///< its operand that was read out of range
  int64_t index = 0;           ///< where
  bool good() const { return op == nullptr; }
};

/// Sees each op before and after (`done`) its kernel runs, with the addresses of its operands, then
/// of its results. When it returns false the step ends there.
using Watch = std::function<bool(const ir::Op& op, void* const* buffers, bool done)>;

/// A library finds only as it is to compute what its kernel claimed that it cannot.
class LibraryRefusal : public DeviceError {
 public:
  /// `what`: the op, and why, in one line.
  explicit LibraryRefusal(const std::string& what)
      : DeviceError(what + "; start the program again: code is generated for it then"),
        refused_(what) {}
  const std::string& refused() const { return refused_; }

 private:
  std::string refused_;
};

/// A program compiled for one batch size: a flat list of calls.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Before bind(): steps will be timed.
  virtual void expect_times() {}
  /// The memory that it is bound to will go: it keeps nothing that refers to it. Once the steps
  /// that were begun are done; none begins before the next bind().
  virtual void unbind() {}
  /// May write to the slots of the place and to transient memory. Throws LibraryRefusal where the
  /// target claims less from now on: the program is to go through the pipeline again.
  virtual void bind(const Memory& memory, const Variables& variables) = 0;
  /// Begins the whole step with the feeds of one slot and the outputs of one, after those begun
  /// before, of any executable on this memory. Returns how it ended; or nothing, and then finish()
  /// says it: until then the host leaves both slots alone. Allocates nothing. Where `times` is not
  /// null, which takes expect_times(), the step ends here, and `times->calls` has an entry for each
  /// of calls(), filled in terms of clock_ns(). After a DeviceError, of finish() too, variables may
  /// have been written, in part, unless it says that they were not; the next step starts anew.
  ///
  /// Where it returns nothing, steps may be begun after one that is refused, before that is known.
  /// Those of programs that may refuse data themselves change no variable then either, until
  /// PlaceMemory::allow_updates(). Others do not look: but where eval or predict may refuse data,
  /// so may training, which computes the same outputs from the same feeds.
  virtual std::optional<Status> start(Slots slots, RunTimes* times) = 0;
  /// Waits for the step begun last with this slot for outputs, which start() left unfinished.
  virtual Status finish(int outputs) = 0;
  /// Both.
  Status run(Slots slots, RunTimes* times) {
    const std::optional<Status> ended = start(slots, times);
    return ended ? *ended : finish(slots.outputs);
  }
  /// The ops of the list, in the order in which they are called.
  virtual std::vector<const ir::Op*> calls() const = 0;
  /// Who sees the next runs; null: nobody. A run that is seen stays within this process: sums over
  /// processes are left out, and all that is made of them.
  virtual void watch(Watch watch) = 0;
};

/// A place that runs programs.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Target& target() const = 0;
  virtual int threads() const = 0;  ///< of the host, for copies
  /// Memory for a session. Throws DeviceError when there is not as much.
  virtual std::shared_ptr<PlaceMemory> memory(const Regions& regions) const = 0;
  /// Compiles the main graph of a program that went through the whole pipeline. Both arguments must
  /// live as long as the result. Null where a library turns out to have no way to compute what its
  /// kernel claimed: the target claims that no more, and the program is to go through the pipeline
  /// again.
  virtual std::unique_ptr<Executable> build(const ir::Program& final_program,
                                            const MemoryPlan& plan, const Options& options) = 0;
  /// Gives the processes that share a program rank 0's bytes at a place in their sessions' memory.
  /// A call of all ranks.
  virtual void broadcast(std::byte* at, int64_t bytes) = 0;
  virtual CompileReport report() const = 0;
  /// What was chosen by timing for what it has built, as text, by what it was chosen for.
  virtual std::map<std::string, std::string> decisions() const { return {}; }
  /// Lets what processes that work together have decided hold from now on, of what it knows.
  /// Whether anything changed: then executables are to be bound again.
  virtual bool take(const std::map<std::string, std::string>&) { return false; }
  /// Of a place with memory of its own: who takes that besides arenas, with bytes, as measured.
  virtual std::vector<std::pair<std::string, int64_t>> outside() const { return {}; }
  /// Bytes of host memory that such a place copies from and to.
  virtual int64_t pinned() const { return 0; }
  /// What it can do at most; may measure for a moment.
  virtual Limits limits() const = 0;
};

}  // namespace fluid
