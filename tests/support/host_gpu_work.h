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

/// Queued work: runs once all that it comes after is done.
struct HostWork {
  std::function<void()> run;
  /// Addresses that it is given, of memory among others.
  std::vector<const void*> given = {};
  std::vector<std::shared_ptr<HostWork>> after = {};
  /// For work that waits for other processes: returns whether they have arrived. Called repeatedly,
  /// with the work's own address, once all work in `after` is done.
  std::function<bool(const HostWork* self)> others = {};
  HostEvent* noted = nullptr;  ///< when it is done, if it was recorded
  bool done = false;
  int64_t done_at = 0;  ///< completion time, on a clock that counts work
};

/// Work that a stream or an event stands for: what comes next waits for all of it.
using HostFrontier = std::vector<std::shared_ptr<HostWork>>;

/// The work recorded from the streams that joined the capture of `origin`.
struct HostCapture {
  const void* origin = nullptr;
  HostFrontier recorded;
  bool lost = false;   ///< by a call that is not allowed meanwhile
  bool ended = false;  ///< events noted in it stand for nothing any more
};

struct HostStream {
  HostFrontier queued, recorded;
  std::shared_ptr<HostCapture> capture;  ///< null: runs what it is given
};

struct HostEvent {
  HostFrontier stands_for;
  std::shared_ptr<HostCapture> capture;  ///< capture in which the event was recorded
  bool noted = false;
  bool times = false;  ///< tells the time
};

/// Why a call did not go well.
struct HostError {
  FluidGpuResult result;
  std::string why;
};
/// The refusal of a call that misuses the GPU.
inline HostError misused(const std::string& why) { return {fluid_gpu_invalid_usage, why}; }

/// When queued work runs. A GPU may do it at any time between being given it and being waited for.
enum class HostPace : uint8_t {
  early,   ///< at once
  late,    ///< when somebody waits for it
  random,  ///< some at every call
};

/// Runs the work of all streams in any order that events and streams allow.
class HostScheduler {
 public:
  HostScheduler(HostPace pace, uint64_t seed) : pace_(pace), random_(seed) {}

  /// After what the stream has.
  void add(HostStream& stream, HostWork work);
  void note(HostEvent& event, const HostStream& stream) const;
  void wait(HostStream& stream, const HostEvent& event) const;
  /// Throws when other processes that it waits for do not come within a minute.
  void run_until_done(const HostFrontier& work);
  void run_all();
  /// Somebody looks whether work is done, for more than the first time: that is waiting, too.
  void look() {
    if (pace_ == HostPace::late) run_one();
  }
  static bool is_done(const HostFrontier& work);

  void begin_capture(HostStream& stream, const std::vector<HostStream*>& all);
  /// The recorded work, each after what it comes after.
  HostFrontier end_capture(HostStream& stream, const std::vector<HostStream*>& all);
  void launch(const HostFrontier& graph, HostStream& stream);

  /// Lets the clock go on, and some work be done where it is done at random times.
  void pass();

 private:
  bool run_one();
  /// Runs `until` it says so, or nothing is left that runs now or may once others have come.
  void run(const std::function<bool()>& until);

  HostPace pace_;
  std::mt19937_64 random_;
  std::vector<std::shared_ptr<HostWork>> pending_;
  int64_t now_ = 0;
};

}  // namespace fluid::testing
