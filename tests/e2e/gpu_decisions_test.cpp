// Bound steps adopt the tuning choices of other processes, on a host that stands in for a GPU. If
// rebinding fails, the old choices stay.

#include <gtest/gtest.h>

#include <optional>

#include "executor/session/session.h"
#include "executor/session/session_options.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/functions.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu_test.h"
#include "tests/support/lack.h"
#include "tests/support/temp_dir.h"

namespace fluid::gpu_decisions_test {
namespace {

using fluid::testing::fail_host_gpu;

constexpr int64_t kSamples = 32, kIn = 64;
constexpr int kFirstCaptures = 4;  ///< captures of a step, after one trial per product
using Decisions = std::map<std::string, std::string>;

/// A dense layer that is wide enough for a library.
Program wide_layer() {
  Program net("wide");
  const Value x = net.data("x", {kBatch, kIn}, f32);
  const Value loss = mean(square(linear(x, {.units = 128})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  return net;
}

/// Steps of it.
class Training {
 public:
  Training()
      : session_(wide_layer().ir().clone(), testing::stand_in({.cache_dir = cache_.path()}),
                 session_options({})),
        step_(session_.prepare({.batch = kSamples})) {
    session_.initialise();
  }

  Session& session() { return session_; }
  Decisions decided() const { return session_.device().tuning_record(); }
  OutputViews begin(int step) {
    Tensor x(f32, {kSamples, kIn});
    for (int64_t i = 0; i < x.numel(); ++i) {
      x.as<float>()[static_cast<size_t>(i)] = static_cast<float>((i * 7 + step) % 13) * 0.1F;
    }
    return session_.run(step_, {.size = kSamples, .columns = {{"x", x}}});
  }
  std::vector<float> weights() {
    const Tensor w = session_.values().value(session_.variables().at("fc0.w"));
    return {w.as<float>().begin(), w.as<float>().end()};
  }

 private:
  TempDir cache_;
  Session session_;
  PreparedStep& step_;
};

/// Returns the tuning choices on a GPU where split-K is fastest, which gives different bits.
Decisions choices_of_other_rank() {
  fluid::testing::change_host_gpu({.split_k_is_fast = true});
  const Decisions decided = Training().decided();
  fluid::testing::change_host_gpu({});
  return decided;
}

class GpuDecisions : public testing::HostGpuTest {};

/// Never are there more graphs than steps have.
TEST_F(GpuDecisions, AreTakenByStepsThatAreBound) {
  const Decisions others = choices_of_other_rank();
  fluid::testing::reset_host_gpu({});
  Training training;
  ASSERT_EQ(others.size(), training.decided().size());
  ASSERT_NE(others, training.decided());
  const std::vector<float> before = training.weights();
  const OutputViews outputs = training.begin(0);
  const size_t graphs = fluid::testing::host_gpu_most_graphs();
  training.session().adopt_tuning_record(others);
  EXPECT_EQ(fluid::testing::host_gpu_most_graphs(), graphs);
  EXPECT_EQ(training.decided(), others);
  EXPECT_GT(outputs["loss"].item(), 0) << "of the step before";
  EXPECT_NE(training.weights(), before);
}

TEST_F(GpuDecisions, ThatCannotBeBoundAtOnceLeaveVariablesAndSteps) {
  const Decisions others = choices_of_other_rank();
  Training undisturbed;
  undisturbed.begin(0);
  undisturbed.session().adopt_tuning_record(others);
  undisturbed.begin(1);
  const std::pair<std::string, int> failures[] = {{"stream_synchronize", 0},
                                                  {"capture_begin", kFirstCaptures},
                                                  {"graph_create", kFirstCaptures}};
  for (const auto& [function, calls] : failures) {
    SCOPED_TRACE(function);
    Training training;
    const OutputViews outputs = training.begin(0);
    const std::vector<float> before = training.weights();
    fail_host_gpu(function, fluid_gpu_out_of_memory, calls);
    EXPECT_EQ(lack_of([&] { training.session().adopt_tuning_record(others); }),
              function + " was told to fail");
    EXPECT_EQ(training.weights(), before);
    EXPECT_GT(outputs["loss"].item(), 0);
    training.begin(1);
    EXPECT_EQ(training.weights(), undisturbed.weights()) << "as was decided";
  }
}

/// Later calls report the error and run nothing; variables can still be read.
TEST_F(GpuDecisions, ThatCannotBeBoundAtAllAreToldFromThenOn) {
  const Decisions others = choices_of_other_rank();
  Training training;
  training.begin(0);
  const std::vector<float> before = training.weights();
  fail_host_gpu("graph_create", fluid_gpu_out_of_memory, kFirstCaptures);
  fail_host_gpu("capture_begin", fluid_gpu_out_of_memory, kFirstCaptures + 1);
  const std::string why =
      error_of<DeviceError>([&] { training.session().adopt_tuning_record(others); });
  EXPECT_TRUE(why.starts_with("graph_create was told to fail: ")) << why;
  EXPECT_TRUE(why.ends_with(
      "; the prepared steps cannot be bound to their memory again, so no step can run"))
      << why;
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(error_of<DeviceError>([&] { training.begin(1); }), why);
    EXPECT_EQ(error_of<DeviceError>([&] { training.session().prepare({.batch = 8}); }), why);
  }
  EXPECT_EQ(training.weights(), before);
}

}  // namespace
}  // namespace fluid::gpu_decisions_test
