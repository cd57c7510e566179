#pragma once

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "executor/gpu_driver/backend_table.h"

namespace fluid::testing {

struct HostEvent;

/// Queued work. It runs once all work in `after` is done.
struct HostWork {
  std::function<void()> run;
  /// Addresses that the work uses.
  std::vector<const void*> given = {};
  std::vector<std::shared_ptr<HostWork>> after = {};
  /// For work that waits for other processes: returns whether they have arrived. Called repeatedly,
  /// with the work's own address, once all work in `after` is done.
  std::function<bool(const HostWork* self)> others = {};
  HostEvent* noted = nullptr;  ///< event to record when the work is done; null: none
  bool done = false;
  int64_t done_at = 0;  ///< completion time, on a clock that counts work
};

/// The last work of a stream or an event: later work waits for all of it.
using HostFrontier = std::vector<std::shared_ptr<HostWork>>;

/// The work recorded from the streams that joined the capture of `origin`.
struct HostCapture {
  const void* origin = nullptr;
  HostFrontier recorded;
  bool lost = false;   ///< whether a call that is not allowed invalidated the capture
  bool ended = false;  ///< whether its events are no longer valid
};

struct HostStream {
  HostFrontier queued, recorded;
  std::shared_ptr<HostCapture> capture;  ///< the current capture; null: none
};

struct HostEvent {
  HostFrontier stands_for;
  std::shared_ptr<HostCapture> capture;  ///< capture in which the event was recorded
  bool noted = false;
  bool times = false;  ///< whether the event records its time
};

/// The error of a call.
struct HostError {
  FluidGpuResult result;
  std::string why;
};
/// The error of a call that misuses the GPU.
inline HostError misused(const std::string& why) { return {fluid_gpu_invalid_usage, why}; }

/// When queued work runs. A GPU may run it at any time before the host waits for it.
enum class HostPace : uint8_t {
  early,   ///< at once
  late,    ///< when the host waits for it
  random,  ///< some work at every call
};

/// Runs the work of all streams in any order that events and streams allow.
class HostScheduler {
 public:
  HostScheduler(HostPace pace, uint64_t seed) : pace_(pace), random_(seed) {}

  /// Queues `work` after the work of the stream.
  void add(HostStream& stream, HostWork work);
  void note(HostEvent& event, const HostStream& stream) const;
  void wait(HostStream& stream, const HostEvent& event) const;
  /// Throws if another process for which the work waits does not arrive within a minute.
  void run_until_done(const HostFrontier& work);
  void run_all();
  /// Called when the host polls for completion again, which counts as waiting.
  void look() {
    if (pace_ == HostPace::late) run_one();
  }
  static bool is_done(const HostFrontier& work);

  void begin_capture(HostStream& stream, const std::vector<HostStream*>& all);
  /// Returns the recorded work, in dependency order.
  HostFrontier end_capture(HostStream& stream, const std::vector<HostStream*>& all);
  void launch(const HostFrontier& graph, HostStream& stream);

  /// Advances the clock. At random pace, may run some work.
  void pass();

 private:
  bool run_one();
  /// Runs work until `until` returns true, or no work is left that can run.
  void run(const std::function<bool()>& until);

  HostPace pace_;
  std::mt19937_64 random_;
  std::vector<std::shared_ptr<HostWork>> pending_;
  int64_t now_ = 0;
};

}  // namespace fluid::testing
