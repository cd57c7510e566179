// Tests data that one of several ranks rejects. In an evaluation, the other ranks continue; in a
// training step, all ranks stop.

#include <gtest/gtest.h>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "tests/support/errors.h"
#include "tests/support/processes.h"
#include "tests/support/training.h"

namespace fluid::data_parallel_rejection_test {
namespace {

constexpr int64_t kSamples = 4;  // samples per rank

Program classifier() {
  Program net("classifier");
  const Value x = net.data("x", {kBatch, 2}, f32), label = net.data("label", {kBatch}, i64);
  const Value loss = mean(softmax_cross_entropy(linear(x, {.units = 3}), label));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  return net;
}

/// The batch of this rank. `first`: label of its first sample.
Batch shard_of(const World& world, int64_t first) {
  Tensor x(f32, {kSamples, 2}), label(i64, {kSamples});
  for (float& v : x.as<float>()) v = 1;
  label.as<int64_t>()[0] = first;
  Batch batch{kSamples, {{"x", x}, {"label", label}}, 0};
  batch.first = world.rank * kSamples;
  batch.global_batch_size = world.size * kSamples;
  return batch;
}

TEST(DataParallelRejection, OfAnEvaluationLeavesTheOthersAlone) {
  const auto body = [](const World& world) {
    Executor exe(classifier(), cpu(),
                 {.batch = kSamples, .threads = 1, .distributed = {.world = world}});
    exe.prepare({.eval = {kSamples}});
    exe.run(shard_of(world, 0));
    std::string said;
    try {
      exe.eval(shard_of(world, world.rank == 1 ? 3 : 0)).wait();
    } catch (const UserError& e) {
      said = "refused, ";
    }
    const std::vector<std::byte> before = parameter_bytes(exe);
    exe.run(shard_of(world, 0));
    return said + (parameter_bytes(exe) == before ? "stands still" : "goes on");
  };
  EXPECT_EQ(testing::Ranks(2, body).results(),
            (std::vector<std::string>{"goes on", "refused, goes on"}));
}

/// A rank that rejects any micro-batch of a training step must stop. The other ranks are in the
/// last micro-batch, and would take its next message for a part of it.
TEST(DataParallelRejection, OfAnySliceOfATrainingStepIsTheEnd) {
  const auto body = [](const World& world) {
    Executor exe(
        classifier(), cpu(),
        {.batch = kSamples, .threads = 1, .micro_batches = 2, .distributed = {.world = world}});
    exe.run(shard_of(world, 0));
    if (world.rank == 0) {
      return error_of<DeviceError>([&] { exe.run(shard_of(world, 0)); });
    }
    expect_user_error([&] { exe.run(shard_of(world, 3)); }, "value 3 of feed 'label'");
    return error_of<DeviceError>([&] { exe.run(shard_of(world, 0)); });
  };
  testing::Ranks ranks(2, body);
  const std::string own = ranks.result(1), others = ranks.result(0);
  EXPECT_NE(own.find("this process left a step that all ranks take"), std::string::npos) << own;
  EXPECT_NE(others.find("rank 1"), std::string::npos) << others;
}

}  // namespace
}  // namespace fluid::data_parallel_rejection_test
