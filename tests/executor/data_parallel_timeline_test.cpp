// What is predicted of a step of two processes, and what it takes them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <sstream>
#include <thread>

#include "executor/cpu/cpu_device.h"
#include "executor/measured_step.h"
#include "executor/session_options.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ir/stopwatch.h"
#include "ops/operators.h"
#include "tests/support/processes.h"

namespace fluid {
namespace {

using testing::Ranks;

constexpr int64_t kSamples = 256, kInputs = 256;
constexpr std::chrono::milliseconds kTimeout{30'000};

/// 3.1 MB of gradients.
Program layers_program() {
  Program net("layers");
  Value h = net.data("x", {kBatch, kInputs}, f32);
  for (int i = 0; i < 3; ++i) h = linear(h, {.units = 512, .act = Act::tanh});
  const Value loss = mean(square(linear(h, {.units = 256})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.01});
  return net;
}

/// Over the loopback interface, but as slow as a link.
class SlowCommunicator : public Communicator {
 public:
  SlowCommunicator(Communicator& fast, const Link& link) : fast_(fast), link_(link) {}
  void all_reduce(void* data, int64_t count, DType dtype) override {
    const auto begin = std::chrono::steady_clock::now();
    fast_.all_reduce(data, count, dtype);
    const std::chrono::duration<double, std::milli> whole(
        message_ms({.bytes = count * size_of(dtype)}, link_));
    std::this_thread::sleep_until(begin + whole);
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
  void barrier() override { fast_.barrier(); }
  void set_timeout(std::chrono::milliseconds timeout) override { fast_.set_timeout(timeout); }

 private:
  Communicator& fast_;
  Link link_;
};

struct Times {
  Timeline predicted;
  double measured = 0;
};

/// The fastest of some steps as they are taken with the other processes: what else the machine does
/// is not predicted.
double measured_ms(const Program& net, const ExecutorOptions& options, Communicator& all) {
  const SessionOptions how = session_options(options);
  Session session(net.ir().clone(),
                  cpu_device({.threads = 1, .cache_dir = "", .communicator = &all}), how);
  Options step_options = how.passes;
  step_options.batch = kSamples;
  PreparedStep& step = session.prepare(step_options);
  session.initialise();
  Batch batch{.size = kSamples,
              .columns = {{"x", Tensor(f32, {kSamples, kInputs})}},
              .first = options.world.rank * kSamples,
              .whole = options.world.size * kSamples};
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const Stopwatch watch;
    session.run(step, batch);
    times.push_back(watch.ms());
  }
  return std::ranges::min(times);
}

Times times_of(const World& world, Communicator& all, const Link& link) {
  const Program net = layers_program();
  const ExecutorOptions options{.batch = kSamples,
                                .threads = 1,
                                .world = world,
                                .buckets = {.first_bytes = 1 << 18, .bytes = 1 << 20}};
  all.barrier();
  Times times{.predicted = timeline(measure_steps(net, {options})[0].calls, link)};
  all.barrier();
  times.measured = measured_ms(net, options, all);
  return times;
}

/// The fastest of some all-reduces.
double all_reduce_ms(Communicator& all, int64_t bytes) {
  std::vector<float> sums(static_cast<size_t>(bytes) / sizeof(float));
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 20; ++i) {
    all.barrier();
    const Stopwatch watch;
    all.all_reduce(sums.data(), static_cast<int64_t>(sums.size()), f32);
    fastest = std::min(fastest, watch.ms());
  }
  return fastest;
}

/// The loopback interface between two processes as messages of this size meet it.
Link loopback(Communicator& all) {
  constexpr int64_t kBytes = 1 << 20;
  const double least = all_reduce_ms(all, sizeof(float)), ms = all_reduce_ms(all, kBytes);
  return {.world = 2, .bytes_per_ms = kBytes / std::max(1e-3, ms - least), .latency_ms = least / 2};
}

/// What rank 0 of two sees over a link that lets `bytes_per_ms` through; 0: as it is.
Times seen_over(double bytes_per_ms) {
  Ranks ranks(2, [&](const World& world) {
    const auto fast = make_communicator(world, kTimeout);
    Link link{.world = 2, .bytes_per_ms = bytes_per_ms, .latency_ms = 1};
    SlowCommunicator slow(*fast, link);
    if (bytes_per_ms == 0) link = loopback(*fast);
    const Times times = times_of(world, bytes_per_ms == 0 ? *fast : slow, link);
    fast->barrier();
    const Timeline& t = times.predicted;
    return fmt::format("{} {} {} {} {} {:.2f} GB/s, {:.0f} us a message", times.measured, t.step,
                       t.computing, t.communicating, t.messages.size(), link.bytes_per_ms / 1e6,
                       1e3 * link.latency_ms);
  });
  const std::string text = ranks.result(0);
  std::istringstream in(text);
  Times seen;
  size_t messages = 0;
  Timeline& t = seen.predicted;
  in >> seen.measured >> t.step >> t.computing >> t.communicating >> messages;
  std::string link;
  EXPECT_TRUE(std::getline(in, link)) << text;
  EXPECT_EQ(messages, 5) << "four buckets and the loss";
  fmt::print("{}: measured {:.1f} ms, predicted {:.1f}; computing {:.1f}, communicating {:.1f}\n",
             link, seen.measured, t.step, t.computing, t.communicating);
  return seen;
}

TEST(DataParallelTimeline, PredictsAStepThatWaitsForItsMessages) {
  const Times seen = seen_over(20e3);
  EXPECT_GT(seen.predicted.communicating, 100) << "the link is slow";
  EXPECT_GT(seen.measured, 0.9 * seen.predicted.step);
  EXPECT_LT(seen.measured, 1.3 * seen.predicted.step);
}

TEST(DataParallelTimeline, PredictsAStepThatComputesMeanwhile) {
  const Times seen = seen_over(3e5);
  EXPECT_GT(seen.predicted.overlap(), 0.2);
  EXPECT_GT(seen.measured, 0.4 * seen.predicted.step);
  EXPECT_LT(seen.measured, 2.5 * seen.predicted.step);
}

/// Here sending takes time of the cores that compute, which no link is asked for.
TEST(DataParallelTimeline, PredictsAStepOverLoopback) {
  const Times seen = seen_over(0);
  EXPECT_GT(seen.measured, 0.3 * seen.predicted.step);
  EXPECT_LT(seen.measured, 4 * seen.predicted.step);
}

}  // namespace
}  // namespace fluid
