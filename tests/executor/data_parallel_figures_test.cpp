// Several processes train as one does on all of their samples.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/transformer.h"
#include "ops/operators.h"
#include "tests/support/parallel_training.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace fluid::data_parallel_figures_test {
namespace {

using testing::expect_near;
using testing::kSamples;
using testing::kUneven;
using testing::kWhole;
using testing::normalising_program;
using testing::parallel_program;
using testing::Ranks;
using testing::Seen;
using testing::seen_in;
using testing::shard_of_batch;
using testing::text_of;
using testing::trained;
using testing::trained_by;

/// How ranks divide their work, and the samples of an epoch of which they have unequal shares.
struct Way {
  int64_t micro_batches = 1;
  int zero = 0;
  int64_t samples = kSamples;
};

std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.micro_batches << " micro-batches, zero " << way.zero << ", " << way.samples
             << " samples";
}

/// With as many ranks as the parameter says.
class DataParallelFigures : public ::testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }

  ExecutorOptions options_with(const Way& way) const {
    return {.micro_batches = way.micro_batches,
            .cache_dir = cache_.path(),
            .distributed = {.zero = way.zero}};
  }

  /// 50 steps in f64 of `net` come to what one process sees.
  void expect_as_one_process(const Program& net, const std::vector<Way>& ways, bool sync_bn) {
    for (const Way& way : ways) {
      SCOPED_TRACE(::testing::PrintToString(way));
      ExecutorOptions options = options_with(way);
      options.precision.dtype = f64;
      options.distributed.sync_bn = sync_bn;
      const Seen one =
          trained(net, {.cache_dir = cache_.path(), .precision = {.dtype = f64}}, 50, way.samples);
      const Seen all = trained_by(ranks(), net, options, 50, way.samples);
      expect_near(all.figures, one.figures, 1e-9);
      expect_near(all.parameters, one.parameters, 1e-9);  // and running statistics
    }
  }

 private:
  TempDir cache_;
};

INSTANTIATE_TEST_SUITE_P(Ranks, DataParallelFigures, ::testing::Values(3));
INSTANTIATE_TEST_SUITE_P(Long, DataParallelFigures, ::testing::Values(2, 4));

const std::vector<Way> kWays = {{.samples = kUneven}, {.micro_batches = 2}};
const std::vector<Way> kShardedCases = {{.zero = 1},
                                        {.micro_batches = 2, .zero = 1, .samples = kUneven}};

TEST_P(DataParallelFigures, AreThoseOfOneProcess) {
  expect_as_one_process(parallel_program(), {{}}, false);
}

TEST_P(DataParallelFigures, AreThoseOfOneProcessWithAClippedGlobalNorm) {
  const Program net = parallel_program({.clip = {.global_norm = 0.5}});
  expect_as_one_process(net, kWays, false);
  expect_as_one_process(net, kShardedCases, false);
}

TEST_P(DataParallelFigures, AreThoseOfOneProcessWithAverages) {
  const Program net = parallel_program({.ema = {.decay = 0.9}});
  expect_as_one_process(net, kWays, false);
  expect_as_one_process(net, kShardedCases, false);
}

TEST_P(DataParallelFigures, AreThoseOfOneProcessWithAttentionDropout) {
  Program net("attention");
  const Value x = net.data("x", {kBatch, 6}, f32), label = net.data("label", {kBatch}, i64);
  const Value h = transformer_block(reshape(x, {kBatch, 3, 2}),
                                    {.heads = 2, .attention_dropout = 0.4, .name = "block"});
  const Value scores = linear(flatten(h), {.units = 3});
  const Value loss = mean(softmax_cross_entropy(scores, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(scores, label));
  net.output("scores", scores);
  minimize(loss, SGD{.lr = 0.1});
  expect_as_one_process(net, kWays, false);
}

TEST_P(DataParallelFigures, AreThoseOfOneProcessWithClippedNorms) {
  expect_as_one_process(parallel_program({.clip = {.norm = 0.2}}), kShardedCases, false);
}

TEST_P(DataParallelFigures, AreThoseOfOneProcessWithClippedValues) {
  expect_as_one_process(parallel_program({.clip = {.value = 0.02}}), kShardedCases, false);
}

TEST_P(DataParallelFigures, AreThoseOfOneProcessWithSynchronisedStatistics) {
  const Program net = normalising_program(50, {.clip = {.global_norm = 0.5}}, 0.25);
  expect_as_one_process(net, {{}, {.zero = 1, .samples = kUneven}}, true);
}

TEST(DataParallel, OneProcessSynchronisesNothing) {
  const Program net = normalising_program(50);
  EXPECT_EQ(trained(net, {.precision = {.dtype = f64}, .distributed = {.sync_bn = true}}, 5),
            trained(net, {.precision = {.dtype = f64}}, 5));
}

TEST_P(DataParallelFigures, FollowInF32) {
  const Program net = parallel_program({.clip = {.global_norm = 0.5}});
  const std::vector<double> one = trained(net, {}, 10).figures;
  for (const Way& way : {Way{}, Way{.micro_batches = 2}, Way{.zero = 1}}) {
    SCOPED_TRACE(::testing::PrintToString(way));
    expect_near(trained_by(ranks(), net, options_with(way), 10).figures, one, 1e-5);
  }
}

TEST_P(DataParallelFigures, FollowInHalf) {
  const Program net = parallel_program();
  for (const DType dtype : {f16, bf16}) {
    SCOPED_TRACE(name_of(dtype));
    for (const AmpLevel level : {AmpLevel::o1, AmpLevel::o2}) {
      ExecutorOptions options = options_with({});
      options.precision.amp = AmpOptions{.dtype = dtype, .level = level};
      const std::vector<double> one = trained(net, options, 10).figures;
      expect_near(trained_by(ranks(), net, options, 10).figures, one, 0.02);
      if (level == AmpLevel::o1) continue;
      options.distributed.buckets.dtype = dtype;
      options.distributed.zero = 1;
      expect_near(trained_by(ranks(), net, options, 10).figures, one, 0.02);
    }
  }
}

TEST_P(DataParallelFigures, AreSafeInSmallBuckets) {
  const Program net = parallel_program({.clip = {.global_norm = 0.5}});
  const Seen one = trained(net, {.precision = {.dtype = f64}}, 10);
  for (const int zero : {0, 1}) {
    ExecutorOptions options = options_with({.micro_batches = 3, .zero = zero});
    options.precision.dtype = f64;
    options.debug.verify_plan = true;
    options.distributed.buckets = {.first_bytes = 8, .bytes = 100};
    const Seen all = trained_by(ranks(), net, options, 10);
    expect_near(all.figures, one.figures, 1e-9);
    expect_near(all.parameters, one.parameters, 1e-9);
  }
}

TEST_P(DataParallelFigures, SynchroniseStatisticsInHalfAndOnAVerifiedPlan) {
  const Program net = normalising_program(0);
  for (const DType dtype : {f32, bf16}) {
    ExecutorOptions options = options_with({});
    options.distributed.sync_bn = true;
    options.debug.verify_plan = true;
    if (dtype == bf16) options.precision.amp = AmpOptions{.dtype = bf16};
    options.distributed.buckets = {.first_bytes = 8, .bytes = 100};
    const Seen one = trained(net, options, 5);
    expect_near(trained_by(ranks(), net, options, 5).figures, one.figures,
                dtype == f32 ? 1e-4 : 0.05);
  }
}

/// The gradients of a first step by parameter: Adam's first moments, which are a tenth of them.
std::vector<Tensor> gradients_with(const Program& net, const ExecutorOptions& options) {
  Executor exe(net, cpu(), options);
  exe.run(shard_of_batch(options.distributed.world));
  std::vector<Tensor> gradients;
  for (const std::string& name : exe.parameters()) {
    gradients.push_back(exe.parameter(name + ".m").copy());
  }
  return gradients;
}

TEST_P(DataParallelFigures, HalfGradientsAreThoseOfTheWholeBatch) {
  const Program net = parallel_program();
  for (const DType half : {bf16, f16}) {
    const double bound = half == bf16 ? 0x1p-6 : 0x1p-9;
    for (const AmpLevel level : {AmpLevel::o1, AmpLevel::o2}) {
      ExecutorOptions options = options_with({});
      options.threads = 1;
      options.precision.amp = AmpOptions{.dtype = half, .level = level};
      options.batch = kWhole;
      const std::vector<Tensor> one = gradients_with(net, options);
      ASSERT_EQ(one.size(), 6U);
      options.batch = kWhole / ranks();
      const auto texts = Ranks(ranks(), [&](const World& world) {
                           ExecutorOptions mine = options;
                           mine.distributed.world = world;
                           Seen all;
                           for (const Tensor& t : gradients_with(net, mine)) {
                             for (int64_t i = 0; i < t.numel(); ++i) all.figures.push_back(t.at(i));
                           }
                           return text_of(all);
                         }).results();
      const std::vector<double> all = seen_in(texts[0]).figures;
      size_t next = 0;
      for (const Tensor& t : one) {
        double difference = 0, norm = 0;
        for (int64_t i = 0; i < t.numel(); ++i) {
          difference += std::pow(all.at(next++) - t.at(i), 2);
          norm += std::pow(t.at(i), 2);
        }
        EXPECT_GT(norm, 0) << "the step was taken";
        EXPECT_LE(std::sqrt(difference), bound * std::sqrt(norm))
            << name_of(half) << " " << (level == AmpLevel::o2 ? "o2" : "o1") << " gradient of "
            << t.numel() << " elements";
      }
      EXPECT_EQ(next, all.size());
    }
  }
}

}  // namespace
}  // namespace fluid::data_parallel_figures_test
