// Dropout of softmax weights in training steps and in eval.

#include <gtest/gtest.h>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/program.h"
#include "frontend/transformer.h"
#include "ops/operators.h"
#include "tests/support/training.h"

namespace fluid::attention_dropout_test {
namespace {

constexpr int64_t kHeads = 3, kQueries = 40, kKeys = 70;

/// Outputs the softmax weights after dropout: the scores are 0, and the values are the unit matrix.
Program weights_program(double p) {
  Program net("weights");
  const Value q = net.data("q", {kBatch, kHeads, kQueries, 2}, f32);
  const Value k = net.data("k", {kBatch, kHeads, kKeys, 2}, f32);
  const Value v = net.data("v", {kBatch, kHeads, kKeys, kKeys}, f32);
  const Value unit = net.parameter("unit", {1}, Init::constant(1));
  const Value weights = scaled_dot_product_attention(q, k, v * unit, {.dropout = p});
  net.output("weights", weights);
  net.output("other", scaled_dot_product_attention(q, k, v, {.dropout = p}));
  minimize(mean(weights), SGD{.lr = 0});
  return net;
}

Batch unit_values(int64_t samples, int64_t first = 0) {
  Tensor v(f32, {samples, kHeads, kKeys, kKeys});
  for (int64_t i = 0; i < v.numel(); ++i) {
    v.as<float>()[static_cast<size_t>(i)] = i % kKeys == i / kKeys % kKeys ? 1 : 0;
  }
  return {.size = samples,
          .columns = {{"q", Tensor(f32, {samples, kHeads, kQueries, 2})},
                      {"k", Tensor(f32, {samples, kHeads, kKeys, 2})},
                      {"v", v}},
          .first = first,
          .global_batch_size = first + samples};
}

std::vector<float> values(const Tensor& t) { return {t.as<float>().begin(), t.as<float>().end()}; }

TEST(AttentionDropout, DropsTheGivenFractionAndScalesTheOthers) {
  Executor exe(weights_program(0.25), cpu(), {.seed = 3});
  const OutputViews outputs = exe.run(unit_values(4));
  const std::vector<float> weights = values(outputs["weights"]);
  double kept = 0;
  for (const float w : weights) {
    kept += w != 0 ? 1 : 0;
    if (w != 0) {
      EXPECT_NEAR(w, 1 / (0.75 * kKeys), 1e-8);
    }
  }
  // 33,600 weights: the standard deviation of the fraction is 0.0024.
  EXPECT_NEAR(kept / static_cast<double>(weights.size()), 0.75, 0.01);
  EXPECT_NE(weights, values(outputs["other"])) << "a stream for each op";
}

TEST(AttentionDropout, DrawsAnewInEachStepAndNotInEval) {
  Executor exe(weights_program(0.5), cpu()), again(weights_program(0.5), cpu());
  const Batch batch = unit_values(2);
  const std::vector<float> first = values(exe.run(batch)["weights"]);
  EXPECT_EQ(values(again.run(batch)["weights"]), first);
  EXPECT_NE(values(exe.run(batch)["weights"]), first);
  for (const float w : values(exe.eval(batch)["weights"])) EXPECT_EQ(w, 1.f / kKeys);
}

TEST(AttentionDropout, MasksDependOnTheSampleAloneNotOnItsBatch) {
  const Program net = weights_program(0.5);
  const auto weights = [&](const Batch& batch, int64_t micro_batches) {
    Executor exe(net, cpu(), {.micro_batches = micro_batches});
    return values(exe.run(batch)["weights"]);
  };
  const std::vector<float> whole = weights(unit_values(5), 1);
  EXPECT_EQ(weights(unit_values(5), 3), whole);
  const std::vector<float> last = weights(unit_values(2, 3), 1);
  EXPECT_EQ(last,
            std::vector<float>(whole.end() - static_cast<ptrdiff_t>(last.size()), whole.end()));
}

/// The loss, then a parameter, of three steps of a transformer block with dropout.
std::vector<double> trajectory(const ExecutorOptions& options) {
  Program net("block");
  const Value x = net.data("x", {kBatch, 7, 8}, f64);
  const Value y = transformer_block(
      x, {.heads = 2, .causal = true, .dropout = 0.1, .attention_dropout = 0.3, .name = "block"});
  const Value loss = mean(square(y));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  Executor exe(net, cpu(), options);
  Tensor t(f64, {6, 7, 8});
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.as<double>()[static_cast<size_t>(i)] = static_cast<double>(i * i % 17) / 17;
  }
  std::vector<double> seen;
  for (int i = 0; i < 3; ++i) {
    seen.push_back(exe.run({.size = 6, .columns = {{"x", t}}})["loss"].item());
  }
  const Tensor w = exe.parameter("block.attention.qkv.w");
  for (int64_t i = 0; i < w.numel(); ++i) seen.push_back(w.at(i));
  return seen;
}

TEST(AttentionDropout, MicroBatchesTrainAsTheWholeBatchDoes) {
  const std::vector<double> whole = trajectory({});
  const std::vector<double> cut = trajectory({.micro_batches = 4});
  ASSERT_EQ(cut.size(), whole.size());
  for (size_t i = 0; i < cut.size(); ++i) EXPECT_NEAR(cut[i], whole[i], 1e-12);
}

TEST(AttentionDropout, RepeatedLayersShareKernels) {
  const auto kernels = [](int blocks) {
    Program net("blocks");
    Value x = net.data("x", {kBatch, 7, 8}, f32);
    for (int i = 0; i < blocks; ++i)
      x = transformer_block(x, {.heads = 2, .attention_dropout = 0.3});
    minimize(mean(square(x)), SGD{.lr = 0.1});
    net.output("x", x);
    return num_kernels(Executor(net, cpu(), {.batch = 2}));
  };
  EXPECT_EQ(kernels(4), kernels(3));
}

}  // namespace
}  // namespace fluid::attention_dropout_test
