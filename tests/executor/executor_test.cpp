#include "executor/executor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>

#include "executor/places/place_machine.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::executor_test {
namespace {

Tensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return Tensor::of<float>(std::move(shape), values);
}

/// y = relu(x w + b) and its sum; the distance to a target.
Program forward_net() {
  Program net("forward");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const Value target = net.data("target", {kBatch, 3}, f32);
  const Value y = linear(x, {.units = 3, .act = Act::relu});
  net.output("y", y);
  net.output("total", sum(y));
  net.output("distance", sum(mse_loss(y, target)));
  return net;
}

Batch forward_batch() {
  return {.size = 2,
          .columns = {{"x", floats({2, 2}, {1, 1, 2, -1})}, {"target", Tensor(f32, {2, 3})}}};
}

void set_weights(Executor& exe) {
  exe.set_parameter("fc0.w", floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  exe.set_parameter("fc0.b", floats({3}, {0, -20, 1}));
}

TEST(Executor, RunsAForwardGraph) {
  const Program net = forward_net();
  Executor exe(net, cpu(), {.batch = 2});
  set_weights(exe);
  const OutputViews out = exe.run(forward_batch());
  const std::vector<float> expected = {5, 0, 10, 0, 0, 1};
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(out["y"].at(i), expected[static_cast<size_t>(i)]) << i;
  EXPECT_EQ(out["total"].item(), 16);
  EXPECT_EQ(out["distance"].item(), 126);
  expect_user_error([&] { out["totl"]; }, "no output 'totl' (did you mean 'total'?)");
}

TEST(Executor, OutputsStayUntilTheSecondStepAfter) {
  const Program net = forward_net();
  Executor exe(net, cpu(), {.batch = 2});
  exe.prepare({.eval = {2}});
  set_weights(exe);
  const OutputViews first = exe.run(forward_batch());
  Batch other = forward_batch();
  other.columns[0].second = floats({2, 2}, {0, 0, 0, 0});
  const OutputViews second = exe.eval(other);
  EXPECT_EQ(first["total"].item(), 16);
  EXPECT_EQ(second["total"].item(), 2);
}

TEST(Executor, OutputsOutliveAGrowingArena) {
  const Program net = forward_net();
  Executor exe(net, cpu(), {.batch = 2});
  set_weights(exe);
  const OutputViews first = exe.run(forward_batch());
  const Tensor kept = first["y"];
  const int64_t before = exe.memory().total;
  exe.prepare({.eval = {4000}});
  ASSERT_GT(exe.memory().total, before);
  exe.eval({.size = 4000,
            .columns = {{"x", Tensor(f32, {4000, 2})}, {"target", Tensor(f32, {4000, 3})}}});
  EXPECT_EQ(first["total"].item(), 16);
  EXPECT_EQ(first["y"].at(5), 1);
  EXPECT_EQ(kept.at(5), 1);
}

TEST(Executor, StaysAsItWasWhenTheSystemHasNoMemoryForAStep) {
  constexpr int64_t kMoreThanAnyAddressSpace = int64_t{1} << 42;
  const Program net = forward_net();
  Executor exe(net, cpu(),
               {.batch = 2, .memory_limit = int64_t{1} << 60, .debug = {.libraries = false}});
  set_weights(exe);
  const int64_t before = exe.memory().total;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(exe.prepare({.eval = {kMoreThanAnyAddressSpace}}), DeviceError) << i;
  }
  EXPECT_EQ(exe.memory().total, before);
  exe.prepare({.predict = {2}});
  EXPECT_EQ(exe.run(forward_batch())["total"].item(), 16);
}

TEST(Executor, SaysThatAStepNeedsMoreThanTheMachineHas) {
  const Program net = forward_net();
  Executor exe(net, cpu(), {.batch = 2, .debug = {.libraries = false}});
  const std::string why = error_of<DeviceError>([&] { exe.prepare({.eval = {int64_t{1} << 42}}); });
  EXPECT_TRUE(why.starts_with("a step of 4398046511104 samples needs ")) << why;
  EXPECT_TRUE(why.ends_with(" GiB, " + memory_limit_of(cpu()).text +
                            "; take a smaller batch, micro-batches or mixed precision"))
      << why;
}

TEST(Executor, PredictGivesWhatTheFeedsDetermine) {
  const Program net = forward_net();
  Executor exe(net, cpu());
  EXPECT_EQ(exe.omitted_outputs({"x"}), std::vector<std::string>{"distance"});
  exe.prepare({.predict = {2}, .predict_feeds = {"x"}});
  set_weights(exe);
  Batch batch = forward_batch();
  batch.columns.pop_back();
  const OutputViews out = exe.predict(batch);
  EXPECT_EQ(out["total"].item(), 16);
  EXPECT_FALSE(out.contains("distance"));
  expect_user_error([&] { exe.prepare({.predict = {2}, .predict_feeds = {"X"}}); },
                    "the program has no feed 'X' (did you mean 'x'?)");
}

TEST(Executor, TakesTensorsByName) {
  const Program net = forward_net();
  Executor exe(net, cpu());
  set_weights(exe);
  const Batch batch = forward_batch();
  const Tensor& x = *batch.find("x");
  const Tensor& target = *batch.find("target");
  EXPECT_EQ(exe.predict({{"x", x}})["total"].item(), 16);
  EXPECT_EQ(exe.eval({{"target", target}, {"x", x}})["distance"].item(),
            exe.eval(batch)["distance"].item());
  EXPECT_EQ(exe.run({{"x", x}, {"target", target}})["total"].item(), 16);
  const Tensor longer(f32, {3, 3});
  expect_user_error([&] { exe.run({{"x", x}, {"target", longer}}); }, "feed 'target' is f32[3, 3]");
  expect_user_error([&] { exe.predict({{"y", x}}); }, "the program has no feed 'y'");
}

/// Without strict_shapes, what was prepared before does not decide.
TEST(Executor, PredictGivesAllThatTheFeedsDetermineWhateverWasPrepared) {
  const Program net = forward_net();
  for (const bool strict : {true, false}) {
    Executor exe(net, cpu(), {.strict_shapes = strict});
    exe.prepare({.predict = {2}, .predict_feeds = {"x"}});
    set_weights(exe);
    const OutputViews out = exe.predict(forward_batch());
    EXPECT_EQ(out["total"].item(), 16);
    EXPECT_EQ(out.contains("distance"), !strict);
  }
}

/// Threads do not go over into a process that is forked, which would wait for them.
TEST(Executor, IsRejectedInAForkedProcess) {
  const Program net = forward_net();
  Executor exe(net, cpu(), {.batch = 2, .threads = 2, .debug = {.check_finite = true}});
  exe.run(forward_batch());
  const auto is_rejected = [&](const std::function<void()>& use) {
    try {
      use();
      return false;
    } catch (const UserError& e) {
      return std::string(e.what()) ==
             "this process was forked after its parent had run steps or opened a GPU, which a fork "
             "does not inherit: fork before making the first Executor, or exec a program in the "
             "child";
    }
  };
  const pid_t child = fork();
  if (child == 0) {
    const bool good = is_rejected([&] { exe.run(forward_batch()); }) &&
                      is_rejected([&] { exe.first_nonfinite(forward_batch()); }) &&
                      is_rejected([&] { exe.prepare({.eval = {2}}); }) &&
                      is_rejected([&] { Executor(net, cpu(), {.batch = 2}); });
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  exe.run(forward_batch());
}

TEST(Executor, CompilesAnUnpreparedBatchUnlessStrict) {
  const Program net = forward_net();
  Executor strict(net, cpu(), {.batch = 3, .strict_shapes = true});
  expect_user_error([&] { strict.run(forward_batch()); },
                    "run() got a batch of 2 samples, which was not prepared: call "
                    "prepare({.train = {2}}) first, or do not set strict_shapes");
  Executor free(net, cpu(), {.batch = 3});
  set_weights(free);
  EXPECT_EQ(free.run(forward_batch())["total"].item(), 16);
  expect_user_error([&] { strict.prepare({.eval = {0}}); }, "cannot prepare a batch of 0 samples");
}

TEST(Executor, RejectsFeedsAndPlacesItCannotUse) {
  const Program net = forward_net();
  Executor exe(net, cpu(), {.batch = 2});
  Batch batch = forward_batch();
  batch.columns[0].second = Tensor(f32, {2, 4});
  expect_user_error([&] { exe.run(batch); },
                    "feed 'x' is f32[2, 4] in a batch of 2; the program takes f32[?, 2]");
  Program empty("empty");
  expect_user_error([&] { Executor(empty, cpu()); },
                    "program 'empty' has no output: mark one with output()");
}

/// On the machine of a made-up library, as which the first to ask for GPUs finds it.
TEST(Executor, SaysWhyThereIsNoGpuToRunOn) {
  const std::string library = std::string(FLUID_BINARY_DIR) + "/gpu_libraries/no_driver.so";
  setenv("FLUID_GPU_LIBRARY", library.c_str(), 1);
  const Program net = forward_net();
  EXPECT_TRUE(
      states(error_of<DeviceError>([&] { Executor(net, cuda(1)); }),
             "there is no cuda:1: no NVIDIA driver is installed, or this container sees none; the "
             "place cpu needs no GPU"));
  EXPECT_EQ(parse_place("auto"), cpu());
  EXPECT_EQ(Executor(net, parse_place("auto")).place(), cpu());
}

TEST(Executor, KnowsPlacesByName) {
  EXPECT_EQ(parse_place("cpu"), cpu());
  EXPECT_EQ(parse_place("cuda"), cuda(0));
  EXPECT_EQ(parse_place("cuda", 3), cuda(3)) << "of the process with that local rank";
  EXPECT_EQ(parse_place("cuda:12", 3), cuda(12));
  EXPECT_EQ(cuda(12).str(), "cuda:12");
  for (const std::string wrong : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x",
                                  "cuda:99999999999", "Cuda:0", "cpu:0"}) {
    expect_user_error([&] { parse_place(wrong); }, "no place '" + wrong + "'");
  }
}

TEST(Executor, StartsFromTheSeedAlone) {
  const Program net = forward_net();
  auto start = [&](uint64_t seed) {
    Executor exe(net, cpu(), {.seed = seed});
    return parameter_bytes(exe);
  };
  EXPECT_EQ(start(1), start(1));
  EXPECT_NE(start(1), start(2));
  Executor exe(net, cpu());
  const Tensor w = exe.parameter("fc0.w");
  for (int64_t i = 0; i < w.numel(); ++i) {
    EXPECT_LE(std::abs(w.at(i)), 1 / std::sqrt(2.0));
    EXPECT_NE(w.at(i), 0);
  }
}

TEST(Executor, SavesAndLoadsParameters) {
  const TempDir dir;
  const Program net = forward_net();
  Executor saved(net, cpu(), {.seed = 1});
  saved.save(dir.file("a.safetensors"));
  Executor loaded(net, cpu(), {.seed = 2});
  loaded.load(dir.file("a.safetensors"));
  EXPECT_EQ(parameter_bytes(saved), parameter_bytes(loaded));
  expect_user_error([&] { loaded.set_parameter("fc0.b", Tensor(f32, {4})); },
                    "'fc0.b' is given as f32[4], but the parameter is f32[3]");
  expect_user_error([&] { loaded.set_parameter("fc0.b", Tensor(i32, {3})); },
                    "'fc0.b' is given as i32[3], but the parameter is f32[3]");
  loaded.set_parameter("fc0.b", Tensor(f64, {3}));
  expect_user_error([&] { loaded.parameter("fc0.v"); }, "no variable 'fc0.v'");
  Program wider("wider");
  const Value x = wider.data("x", {kBatch, 2}, f32);
  wider.output("y", linear(linear(x, {.units = 3}), {.units = 1}));
  Executor other(wider, cpu());
  expect_user_error([&] { other.load(dir.file("a.safetensors")); }, "parameter 'fc1.b' is missing");
}

TEST(Executor, TheGradientOfAHalfPrecisionMeanCountsBeyondItsRange) {
  Program net("half");
  const Value w = net.parameter("w", {100000}, Init::zeros(), {.dtype = f16});
  const Value loss = mean(w);
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 10000});
  for (const bool fuse : {false, true}) {
    Executor exe(net, cpu(), {.debug = {.fuse = fuse}});
    exe.prepare({.train = {1}});
    exe.run({.size = 1});
    EXPECT_NEAR(exe.parameter("w").at(7), -0.1, 0.001) << "fuse " << fuse;
  }
}

TEST(Executor, AStepOnBadDataIsNotApplied) {
  Program net("take_along_axis");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  const Value loss = mean(take_along_axis(linear(x, {.units = 3}), reshape(label, {kBatch, 1})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  Executor exe(net, cpu(), {.batch = 2});
  const auto before = parameter_bytes(exe);
  const std::vector<int64_t> bad = {1, 3}, good = {1, 2};
  Batch batch{
      .size = 2,
      .columns = {{"x", floats({2, 2}, {1, 2, 3, 4})}, {"label", Tensor::of<int64_t>({2}, bad)}}};
  expect_user_error([&] { exe.run(batch); }, "value 3 of feed 'label' is out of range [0, 3)");
  EXPECT_EQ(parameter_bytes(exe), before);
  batch.columns[1].second = Tensor::of<int64_t>({2}, good);
  exe.run(batch);
  EXPECT_NE(parameter_bytes(exe), before);
}

}  // namespace
}  // namespace fluid::executor_test
