// Tests that kernels run during collectives whose results they do not read.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "executor/cpu/cpu_device.h"
#include "executor/session/session.h"
#include "executor/session/session_options.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/program.h"
#include "ops/operators.h"
#include "passes/rewrite.h"

namespace fluid::overlap_test {
namespace {

constexpr int64_t kSamples = 2, kUnits = 16;
constexpr std::chrono::seconds kPatience{20};  // timeout of events that must happen immediately

/// A bucket for each of four layers.
Program layers_program() {
  Program net("layers");
  Value h = net.data("x", {kBatch, kUnits}, f32);
  for (int i = 0; i < 4; ++i) h = linear(h, {.units = kUnits, .act = Act::tanh});
  const Value loss = mean(square(h));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.01});
  return net;
}

/// How far the thread that computes has come in its list.
class Progress {
 public:
  void ends(const ir::Op& op) {
    {
      const std::lock_guard lock(mutex_);
      if (is_collective(op)) {
        handed_over_.push_back(kernels_);
      } else {
        ++kernels_;
      }
    }
    changed_.notify_all();
  }
  /// Waits for the end of a kernel that runs after collective number `exchange` was issued.
  bool goes_on_after(size_t exchange) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] {
      return handed_over_.size() > exchange && kernels_ > handed_over_[exchange];
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t kernels_ = 0;               ///< completed kernels
  std::vector<size_t> handed_over_;  ///< kernels completed when each collective was issued
};

/// Stands for the other processes, which this one cannot tell from it.
class MadeUpCommunicator : public Communicator {
 public:
  void reduce_scatter(void*, int64_t, DType) override {}
  void all_gather(void*, int64_t, DType) override {}
  void broadcast(void*, int64_t, int) override {}
  void barrier(std::chrono::milliseconds) override {}
  void set_timeout(std::chrono::milliseconds) override {}
};

/// Whose first sums are not there until kernels have run after they were asked for.
class PatientCommunicator : public MadeUpCommunicator {
 public:
  PatientCommunicator(Progress& progress, size_t patient)
      : progress_(progress), patient_(patient) {}
  void all_reduce(void*, int64_t, DType) override {
    if (made_ < patient_ && alone_ == 0 && !progress_.goes_on_after(made_)) ++alone_;
    ++made_;
  }
  size_t made() const { return made_; }
  size_t alone() const { return alone_; }  ///< sums that nothing was computed beside

 private:
  Progress& progress_;
  size_t patient_, made_ = 0, alone_ = 0;
};

/// Whose sums of gradients come late, and are all 1.
class LateCommunicator : public MadeUpCommunicator {
 public:
  void all_reduce(void* data, int64_t count, DType dtype) override {
    if (dtype != f32) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::fill_n(static_cast<float*>(data), count, 1.0F);
  }
};

/// A training step of one of two processes.
class ParallelStep {
 public:
  explicit ParallelStep(Communicator& others)
      : session_(layers_program().ir().clone(),
                 cpu_device({.threads = 1,
                             .cache_dir = "",
                             .communicator = &others,
                             .collectives_are_local = true}),
                 how()),
        step_(session_.prepare(how().passes)) {
    session_.initialise();
  }

  void watch(KernelObserver watch) {
    step_.runs().front().compiled->executable->set_observer(std::move(watch));
  }
  void run() {
    session_.run(step_, {.size = kSamples,
                         .columns = {{"x", Tensor(f32, {kSamples, kUnits})}},
                         .global_batch_size = 2 * kSamples});
  }
  /// The variables' first elements.
  std::vector<float> firsts() {
    std::vector<float> all;
    for (const Variable& v : session_.variables().all()) {
      if (v.type.dtype == f32) all.push_back(session_.values().value(v).as<float>()[0]);
    }
    return all;
  }

 private:
  static SessionOptions how() {
    constexpr int64_t kLayer = (kUnits + 1) * kUnits * 4;  // bytes
    SessionOptions options =
        session_options({.distributed = {.world = {.size = 2},
                                         .buckets = {.first_bytes = kLayer, .bytes = kLayer}}});
    options.passes.batch = kSamples;
    return options;
  }

  Session session_;
  PreparedStep& step_;
};

TEST(Overlap, KernelsRunWhileGradientsAreAddedUp) {
  Progress progress;
  PatientCommunicator others(progress, 3);  // the last of the four has no later kernels
  ParallelStep step(others);
  step.watch([&](const ir::Op& op, void* const*, bool done) {
    if (done) progress.ends(op);
    return true;
  });
  step.run();
  EXPECT_EQ(others.made(), 5) << "four buckets and the loss";
  EXPECT_EQ(others.alone(), 0) << "exchanges that nothing was computed beside";
}

TEST(Overlap, UpdatesWaitForTheirSums) {
  LateCommunicator others;
  ParallelStep step(others);
  const std::vector<float> before = step.firsts();
  step.run();
  const std::vector<float> after = step.firsts();
  ASSERT_EQ(after.size(), 8U);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(before[i] - after[i], 0.01, 1e-6) << i;
}

}  // namespace
}  // namespace fluid::overlap_test
