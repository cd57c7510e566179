#include "executor/cpu/kernel_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "executor/cpu/cpu_target.h"
#include "executor/executor.h"
#include "executor/tuning/trial_steps.h"
#include "ops/operators.h"
#include "passes/layouts.h"
#include "tests/support/errors.h"
#include "tests/support/library_program.h"
#include "tests/support/small_programs.h"
#include "tests/support/temp_dir.h"

namespace fluid::kernel_tuner_test {
namespace {

using testing::LibraryProgram;
using Record = std::map<std::string, std::string>;

/// A channels-last convolution, for which oneDNN and Winograd have kernels, with a bias and a relu.
struct Convolution : LibraryProgram {
  explicit Convolution(DType type = f32) {
    dtype = type;
    const Value x = feed({4, 32, 16, 16}), w = feed({32, 32, 3, 3}), bias = feed({32});
    const Value y = conv2d(x, w, {.padding = 1});
    const Value sum = y + reshape(bias, Shape{32, 1, 1});
    then(y);
    then(sum);
    then(relu(sum));
    x.op()->results[0].type.layout = channels_last();
    for (ir::Op* op : chain) op->results[0].type.layout = channels_last();
  }
};

KernelTimes predicted(const LibraryProgram& p, const EpilogueOps& epilogue) {
  const CpuTarget target(describe_host(1));
  return {.op = *p.chain[0],
          .epilogue = epilogue,
          .libraries = target.candidates(*p.chain[0], epilogue),
          .generated = target.generated_seconds(*p.chain[0])};
}

/// The only entry of `record`, with the times of its kernels replaced by `seconds`.
Record with_times(const Record& record, const std::function<double(const std::string&)>& seconds) {
  auto entry = nlohmann::ordered_json::parse(record.begin()->second);
  for (auto& [kernel, time] : entry.at("seconds").items()) time = seconds(kernel);
  return {{record.begin()->first, entry.dump()}};
}

class KernelTuning : public ::testing::Test {
 protected:
  void SetUp() override {
    if (library_version().empty()) GTEST_SKIP() << "a build without libraries";
  }
};

TEST_F(KernelTuning, TimesTheKernelsOfAnOpOnce) {
  const Convolution p;
  const TempDir folder;
  KernelTuner tuner(describe_host(1), {.measures = true, .cache_dir = folder.path()});
  const KernelTimes before = predicted(p, {}), after = tuner.measured(predicted(p, {}));
  ASSERT_GT(after.libraries.size(), 1U);
  EXPECT_EQ(after.libraries.size(), before.libraries.size());
  EXPECT_TRUE(std::ranges::is_sorted(after.libraries, {}, &KernelCandidate::seconds));
  for (const KernelCandidate& c : after.libraries) EXPECT_TRUE(c.measured && c.seconds > 0);
  EXPECT_EQ(tuner.timed_ops(), 1);
  EXPECT_GT(tuner.ms(), 0);

  tuner.measured(predicted(p, {}));
  KernelTuner by_disk(describe_host(1), {.measures = true, .cache_dir = folder.path()});
  KernelTuner by_record(describe_host(1), {.measures = true, .record = tuner.record()});
  for (KernelTuner* next : {&by_disk, &by_record}) {
    EXPECT_EQ(next->measured(predicted(p, {})).libraries.at(0).kernel,
              after.libraries.at(0).kernel);
    EXPECT_EQ(next->record(), tuner.record());
    EXPECT_EQ(next->timed_ops(), 0);
  }
  EXPECT_EQ(tuner.timed_ops(), 1);
  KernelTuner two_threads(describe_host(2), {.measures = true, .record = tuner.record()});
  two_threads.measured(predicted(p, {}));
  EXPECT_EQ(two_threads.timed_ops(), 1) << "the times of one thread are not those of two";
}

TEST_F(KernelTuning, TimesAnEpilogueWithItsOp) {
  for (const DType dtype : {f32, bf16}) {
    const Convolution p(dtype);
    KernelTuner tuner(describe_host(1), {.measures = true});
    const KernelTimes timed = tuner.measured(predicted(p, p.epilogue()));
    ASSERT_FALSE(timed.libraries.empty());
    EXPECT_TRUE(timed.libraries.front().measured);
    EXPECT_NE(tuner.record().begin()->second.find("relu"), std::string::npos);
  }
}

TEST_F(KernelTuning, UsesTheTimesOfARecordWithoutMeasuring) {
  const Convolution p;
  KernelTuner measuring(describe_host(1), {.measures = true});
  measuring.measured(predicted(p, {}));
  const auto from = [&](const std::function<double(const std::string&)>& seconds) {
    KernelTuner tuner(describe_host(1), {.record = with_times(measuring.record(), seconds)});
    return tuner.measured(predicted(p, {}));
  };
  const auto is_winograd = [](const std::string& kernel) { return kernel.starts_with("winograd"); };
  EXPECT_TRUE(is_winograd(
      from([&](auto& kernel) { return is_winograd(kernel) ? 1 : 1.1; }).libraries.at(0).kernel));
  EXPECT_FALSE(is_winograd(
      from([&](auto& kernel) { return is_winograd(kernel) ? 1.1 : 1; }).libraries.at(0).kernel));
  const auto tied = from([&](auto& kernel) { return is_winograd(kernel) ? 1 : 1.02; });
  EXPECT_FALSE(is_winograd(tied.libraries.at(0).kernel)) << "a tie: the definition lists it first";
  EXPECT_EQ(tied.libraries.at(0).seconds, tied.libraries.at(1).seconds);

  KernelTuner idle(describe_host(1), {});
  const KernelTimes unchanged = idle.measured(predicted(p, {}));
  EXPECT_EQ(unchanged.libraries.at(0).seconds, predicted(p, {}).libraries.at(0).seconds);
  EXPECT_FALSE(unchanged.libraries.at(0).measured);
}

TEST_F(KernelTuning, KernelsThatPassesMayRejectDecideNoTie) {
  const Convolution p;
  KernelTuner measuring(describe_host(1), {.measures = true});
  measuring.measured(predicted(p, {}));
  KernelTuner tuner(describe_host(1),
                    {.record = with_times(measuring.record(), [](const std::string& kernel) {
                       if (kernel.starts_with("winograd.conv2d_across")) return 1.0;
                       return kernel.starts_with("winograd") ? 1.04 : 1.05;
                     })});
  const std::vector<KernelCandidate> libraries = tuner.measured(predicted(p, {})).libraries;
  ASSERT_GT(libraries.size(), 2U);
  EXPECT_EQ(libraries[0].kernel, "winograd.conv2d_across");
  EXPECT_EQ(libraries[1].seconds, 1.04);
  EXPECT_EQ(libraries[1].kernel, "onednn.conv2d") << "the definition lists it first";
}

TEST_F(KernelTuning, DropsKernelsThatFail) {
  const Convolution p;
  KernelTuner measuring(describe_host(1), {.measures = true});
  measuring.measured(predicted(p, {}));
  Record record = measuring.record();
  auto entry = nlohmann::ordered_json::parse(record.begin()->second);
  for (auto& [kernel, time] : entry.at("seconds").items()) {
    if (kernel.starts_with("winograd")) time = nullptr;
  }
  record.begin()->second = entry.dump();
  KernelTuner tuner(describe_host(1), {.record = record});
  for (const KernelCandidate& c : tuner.measured(predicted(p, {})).libraries) {
    EXPECT_FALSE(c.kernel.starts_with("winograd")) << c.kernel;
  }
}

TEST_F(KernelTuning, GeneratedCodeMustBeClearlyFaster) {
  const Convolution p;
  KernelTuner measuring(describe_host(1), {.measures = true});
  KernelTimes kernels = predicted(p, {});
  kernels.generated = kernels.libraries.at(0).seconds;
  measuring.measured(kernels);
  const auto generated = [&](double seconds) {
    KernelTuner tuner(describe_host(1),
                      {.record = with_times(measuring.record(), [&](auto& kernel) {
                         return kernel == "generated" ? seconds : 1.0;
                       })});
    return tuner.measured(predicted(p, {})).generated;
  };
  EXPECT_EQ(generated(0.9), 0.9);
  EXPECT_GT(generated(0.99), 1);
  EXPECT_EQ(generated(2), 2);
}

TEST_F(KernelTuning, LeavesSmallOpsToPredictions) {
  LibraryProgram p;
  const Value x = p.feed({8, 16}), w = p.feed({16, 8});
  p.then(matmul(x, w));
  KernelTuner tuner(describe_host(1), {.measures = true});
  tuner.measured(predicted(p, {}));
  EXPECT_EQ(tuner.timed_ops(), 0);
}

TEST_F(KernelTuning, RejectsAMalformedRecord) {
  const Convolution p;
  KernelTuner measuring(describe_host(1), {.measures = true});
  measuring.measured(predicted(p, {}));
  const Record malformed = {{measuring.record().begin()->first, "{]"}};
  expect_user_error([&] { KernelTuner(describe_host(1), {.record = malformed}); },
                    "the tuning record has a malformed entry of kernel times: {]");
}

TEST_F(KernelTuning, IsKeptInSnapshots) {
  const Program net(testing::conv_net());
  const Batch batch = synthetic_batch(net, 16);
  const auto losses = [&](Executor& exe) {
    std::vector<double> all;
    for (int step = 0; step < 3; ++step) all.push_back(exe.run(batch)["loss"].item());
    return all;
  };
  Executor tuned(net, cpu(), {.batch = 16, .threads = 2, .cpu = {.tune = true}});
  EXPECT_GT(tuned.compile_report().timed_ops, 0);
  const Record record = tuned.snapshot().tuning_record;
  EXPECT_GT(record.size(), 1U);
  Executor next(net, cpu(), {.batch = 16, .threads = 2, .tuning_record = record});
  EXPECT_EQ(next.snapshot().tuning_record, record);
  EXPECT_EQ(next.compile_report().timed_ops, 0);
  EXPECT_EQ(losses(next), losses(tuned));
}

}  // namespace
}  // namespace fluid::kernel_tuner_test
