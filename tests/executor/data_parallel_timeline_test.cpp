// Compares the predicted times of a data-parallel step of two processes with measured times.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "executor/cpu/cpu_device.h"
#include "executor/session/session.h"
#include "executor/session/session_options.h"
#include "executor/tuning/measured_step.h"
#include "executor/tuning/trial_steps.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace fluid::data_parallel_timeline_test {
namespace {

using testing::Ranks;

constexpr int64_t kSamples = 32;
constexpr double kLargeBytes = 16 * 16 * 16 * 32 * 4;  // bytes of the last layer's weights
constexpr std::chrono::milliseconds kTimeout{30'000};
constexpr double kLatency = 0.1;  // ms
constexpr int kSteps = 40;        // steps of each kind

/// Where nearly all that is sent, 512 KB of the last layer's gradient, is there as soon as backward
/// begins, and nearly all that is computed comes before it or after it.
Program convolutions_program() {
  Program net("convolutions");
  Value h = net.data("x", {kBatch, 16, 16, 16}, f32);
  for (int i = 0; i < 4; ++i) {
    h = conv2d(h, {.filters = 16, .kernel = 3, .padding = 1, .act = Act::tanh});
  }
  const Value loss = mean(square(linear(flatten(h), {.units = 32})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.01});
  return net;
}

/// Over the loopback interface, but as slow as a link, which takes no time of the cores.
class SlowCommunicator : public Communicator {
 public:
  explicit SlowCommunicator(Communicator& fast) : fast_(fast) {}
  void set_speed(double bytes_per_ms) { bytes_per_ms_ = bytes_per_ms; }

  /// Each of two sends its half of the sums to the other, and the sums of the other half.
  void all_reduce(void* data, int64_t count, DType dtype) override {
    const auto begin = std::chrono::steady_clock::now();
    fast_.all_reduce(data, count, dtype);
    const double half = static_cast<double>(count * size_of(dtype)) / 2;
    const std::chrono::duration<double, std::milli> one(kLatency + half / bytes_per_ms_);
    std::this_thread::sleep_until(begin + 2 * one);
  }
  void reduce_scatter(void* data, int64_t count, DType dtype) override {
    fast_.reduce_scatter(data, count, dtype);
  }
  void all_gather(void* data, int64_t count, DType dtype) override {
    fast_.all_gather(data, count, dtype);
  }
  void broadcast(void* data, int64_t bytes, int root) override {
    fast_.broadcast(data, bytes, root);
  }
  void barrier(std::chrono::milliseconds patience) override { fast_.barrier(patience); }
  void set_timeout(std::chrono::milliseconds timeout) override { fast_.set_timeout(timeout); }

 private:
  Communicator& fast_;
  double bytes_per_ms_ = 1;
};

/// Figures of a step of two processes.
struct Figures {
  double step = 0;        ///< ms
  double overlap = 0;     ///< as Timeline::overlap_fraction
  double efficiency = 0;  ///< step time of one process / step time of two processes

  bool are_near(const Figures& o) const {
    return std::abs(step - o.step) < 0.2 * o.step && std::abs(overlap - o.overlap) < 0.15 &&
           std::abs(efficiency - o.efficiency) < 0.25 * o.efficiency;
  }
};

double ms(const TimeSpan& span) { return static_cast<double>(span.ns()) / 1e6; }

/// Compute time of a call. 0 for a collective, because starting it wakes the other thread, which
/// may run first.
double computing_ms(const CallTimes& call) { return call.collective.ns() > 0 ? 0 : ms(call.call); }

double overlap_of(const StepTimes& step) {
  double together = ms(step.runs[0].feeds), communicating = 0;
  for (const CallTimes& call : step.runs[0].calls) {
    together += computing_ms(call) + ms(call.collective);
    communicating += ms(call.collective);
  }
  return (together - ms(step.step)) / communicating;
}

/// Predicts the timeline of `calls` with the call times of `step`.
Timeline timeline_of(const StepTimes& step, std::vector<TimedCall> calls, const Link& link) {
  calls[0].ms = ms(step.runs[0].feeds);
  for (size_t i = 1; i < calls.size(); ++i)
    calls[i].ms = computing_ms(step.runs[0].calls.at(i - 1));
  return simulate_timeline(calls, link);
}

/// Training steps as one process takes them, with the other or alone.
class Steps {
 public:
  Steps(const Program& net, ExecutorOptions options, Communicator* others)
      : options_(std::move(options)),
        session_(
            net.ir().clone(),
            cpu_device({.threads = 1, .cache_dir = options_.cache_dir, .communicator = others}),
            how(options_)),
        step_(prepared()),
        batch_(synthetic_batch(net, kSamples)) {
    batch_.global_batch_size = options_.distributed.world.size * kSamples;
  }

  void run() { session_.run(step_, batch_); }
  std::vector<StepTimes> last() const {
    const Profile profile = session_.profile();
    const auto last = std::span(profile.steps.at(0).times).last(kSteps);
    return {last.begin(), last.end()};
  }
  /// The fastest of the last: what else the machine does is not predicted.
  double least_ms() const {
    double least = std::numeric_limits<double>::infinity();
    for (const StepTimes& step : last()) least = std::min(least, ms(step.step));
    return least;
  }

 private:
  static SessionOptions how(const ExecutorOptions& options) {
    SessionOptions session = session_options(options);
    session.passes.batch = kSamples;
    session.profile = ProfileOptions{.warm_up = 0, .steps = 1000};
    return session;
  }
  PreparedStep& prepared() {
    PreparedStep& step = session_.prepare(how(options_).passes);
    session_.initialise();
    return step;
  }

  ExecutorOptions options_;
  Session session_;
  PreparedStep& step_;
  Batch batch_;
};

struct Case {
  const char* name;
  bool one_bucket;
  double message;  ///< time of the large message / time of the computation after its gradient
  double overlap;  ///< expected overlap, approximately
};
using Cases = std::vector<Case>;

/// One of two processes.
class Rank {
 public:
  Rank(const World& world, Communicator& fast)
      : fast_(fast),
        slow_(fast),
        options_{.batch = kSamples,
                 .threads = 1,
                 .cache_dir = cache_.path(),
                 .distributed = {.world = world}},
        buckets_(with_buckets(1 << 18)),
        one_bucket_(with_buckets(1 << 24)),
        alone_(without_others()),
        parallel_(net_, buckets_, &slow_),
        whole_(net_, one_bucket_, &slow_),
        serial_(net_, alone_, nullptr) {}

  /// Compares up to `attempts` times: what disturbs this machine may have disturbed the one more
  /// than the other. Returns the names of those that are far from what is predicted each time.
  std::string far_of(Cases cases, int attempts) {
    for (int i = 0; i < attempts && !cases.empty(); ++i) compare(cases);
    std::string names;
    for (const Case& c : cases) names += std::string(c.name) + "\n";
    return names;
  }

 private:
  ExecutorOptions with_buckets(int64_t bytes) const {
    ExecutorOptions options = options_;
    options.distributed.buckets = {.first_bytes = bytes, .bytes = 1 << 24};
    return options;
  }
  ExecutorOptions without_others() const {
    ExecutorOptions options = options_;
    options.distributed.world = {};
    return options;
  }

  /// Leaves the cases in `far` that are.
  void compare(Cases& far) {
    fast_.barrier(kTimeout);
    const auto times = measure_steps(net_, {buckets_, one_bucket_, alone_});
    const double one = simulate_timeline(times[2].calls, {}).step;
    const Timeline instant = simulate_timeline(times[0].calls, {.bytes_per_ms = 1e12});
    double after = instant.step - instant.collectives[0].ready;
    fast_.broadcast(&after, sizeof after, 0);
    std::erase_if(far, [&](const Case& c) {
      const Link link{
          .world = 2, .bytes_per_ms = kLargeBytes / (c.message * after), .latency_ms = kLatency};
      const std::vector<TimedCall>& calls = times[c.one_bucket ? 1 : 0].calls;
      int64_t near = is_near(c, simulate_timeline(calls, link), one, calls, link);
      fast_.broadcast(&near, sizeof near, 0);
      return near != 0;
    });
  }

  /// `t`: what is predicted of two processes whose step takes one of them `one` ms.
  bool is_near(const Case& c, const Timeline& t, double one, const std::vector<TimedCall>& calls,
               const Link& link) {
    Steps& parallel = c.one_bucket ? whole_ : parallel_;
    run(parallel, link);
    // Uses the least disturbed step, because late wake-ups only lengthen steps.
    const std::vector<StepTimes> steps = parallel.last();
    const StepTimes& best = *std::ranges::min_element(steps, {}, [&](const StepTimes& step) {
      return ms(step.step) - timeline_of(step, calls, link).step;
    });
    const double step = parallel.least_ms();
    const Figures measured{step, overlap_of(best), serial_.least_ms() / step};
    const Figures predicted{t.step, timeline_of(best, calls, link).overlap_fraction(),
                            one / t.step};
    fmt::print(stderr,
               "{:>15}: step {:.1f} ms (predicted {:.1f}), overlap {:.2f} ({:.2f}), efficiency "
               "{:.2f} ({:.2f})\n",
               c.name, measured.step, predicted.step, measured.overlap, predicted.overlap,
               measured.efficiency, predicted.efficiency);
    return measured.are_near(predicted) && std::abs(t.overlap_fraction() - c.overlap) < 0.25;
  }

  /// Steps with the other and alone take turns, so that what disturbs one disturbs both.
  void run(Steps& parallel, const Link& link) {
    slow_.set_speed(link.bytes_per_ms);
    for (int i = 0; i <= kSteps; ++i) {
      parallel.run();
      fast_.barrier(kTimeout);
      serial_.run();
    }
  }

  const Program net_ = convolutions_program();
  const TempDir cache_;
  Communicator& fast_;
  SlowCommunicator slow_;
  ExecutorOptions options_, buckets_, one_bucket_, alone_;
  Steps parallel_, whole_, serial_;
};

TEST(TimedDataParallel, IsThatOfAProcessThatWaitsForMessagesAlone) {
  const auto nobody = make_communicator({}, kTimeout);
  const Cases cases = {{"hidden", false, 0.5, 0.75},
                       {"half hidden", false, 2, 0.4},
                       {"mostly exposed", false, 6, 0.15},
                       {"exposed", true, 2, 0}};
  EXPECT_EQ(Rank({.size = 2}, *nobody).far_of(cases, 10), "");
}

/// Two processes also wait for each other, which is not predicted. Long messages keep this effect
/// small.
TEST(TimedDataParallel, IsAboutThatOfTwoProcesses) {
  Ranks ranks(2, [](const World& world) {
    const auto fast = make_communicator(world, kTimeout);
    const std::string far =
        Rank(world, *fast)
            .far_of({{"mostly exposed", false, 12, 0.08}, {"exposed", true, 12, 0}}, 5);
    fast->barrier(kTimeout);
    return far;
  });
  EXPECT_EQ(ranks.result(0), "");
}

}  // namespace
}  // namespace fluid::data_parallel_timeline_test
