// A step whose data a kernel rejects changes no variable, with any optimizer and any order of the
// kernels.

#include <gtest/gtest.h>

#include "executor/gpu/gpu_device.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ir/parse.h"
#include "ops/arguments.h"
#include "ops/functions.h"
#include "ops/operators.h"
#include "ops/optim/optimizer.h"
#include "ops/table.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/host_gpu.h"
#include "tests/support/small_programs.h"
#include "tests/support/training.h"

namespace fluid::rejection_test {
namespace {

constexpr int64_t kImages = 3;

Batch images(int64_t last_label) {
  Tensor image(f32, {kImages, 1, 20, 20}), label(i64, {kImages});
  const auto u = testing::golden_uniform(5, image.numel());
  for (size_t i = 0; i < u.size(); ++i) image.as<float>()[i] = static_cast<float>(u[i]);
  label.as<int64_t>()[kImages - 1] = last_label;
  return {kImages, {{"image", image}, {"label", label}}, 0};
}

/// Everything that a step writes: parameters, the optimizer's states, the counters.
std::vector<std::byte> state_bytes(Executor& exe, const std::string& optimizer,
                                   std::vector<std::string> names = {"update", "rng"}) {
  std::vector<std::byte> bytes = parameter_bytes(exe);
  const OpDef& def = *find_optimizer(optimizer);
  for (const std::string& parameter : exe.parameters()) {
    for (const std::string& state : optimizer_states(def, complete_attrs(def, {}, {}))) {
      names.push_back(parameter + "." + state);
    }
  }
  for (const std::string& name : names) {
    const Tensor t = exe.parameter(name);
    const auto* data = static_cast<const std::byte*>(t.data());
    bytes.insert(bytes.end(), data, data + t.bytes());
  }
  return bytes;
}

TEST(RejectionReason, ABadLabelLeavesEveryVariableAsItWas) {
  for (const std::string& optimizer : optimizer_names()) {
    for (const bool fuse : {true, false}) {
      if (!fuse && optimizer != "adam") continue;  // the kernel that checks labels is the same
      const Program net(
          testing::conv_net({.size = 20, .first = 3, .second = 5, .optimizer = optimizer}));
      Executor exe(net, cpu(), {.batch = kImages, .debug = {.fuse = fuse}});
      exe.run(images(9));
      const auto before = state_bytes(exe, optimizer);
      for (const int64_t bad : {int64_t{10}, int64_t{-1}, int64_t{1} << 40}) {
        expect_user_error([&] { exe.run(images(bad)); },
                          "value " + std::to_string(bad) +
                              " of feed 'label' is out of range [0, 10), in sample 2 of the "
                              "batch; the step was not applied");
      }
      EXPECT_EQ(state_bytes(exe, optimizer), before) << optimizer << ", fuse " << fuse;
      exe.run(images(0));
      EXPECT_NE(state_bytes(exe, optimizer), before) << "goes on after a bad batch";
    }
  }
}

/// Statistics are taken long before the loss looks at the labels.
TEST(RejectionReason, ABadLabelLeavesRunningStatisticsAsTheyWere) {
  Program net("normalised");
  const Value image = net.data("image", {kBatch, 1, 20, 20}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  const Value h = batch_norm(conv2d(image, {.filters = 4, .kernel = 3}));
  const Value loss = mean(softmax_cross_entropy(linear(flatten(h), {.units = 10}), label));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  for (const bool fuse : {true, false}) {
    Executor exe(net, cpu(), {.batch = kImages, .debug = {.verify_plan = true, .fuse = fuse}});
    exe.run(images(9));
    const std::vector<std::byte> before = parameter_bytes(exe);
    expect_user_error([&] { exe.run(images(10)); }, "the step was not applied");
    EXPECT_EQ(parameter_bytes(exe), before) << "fuse " << fuse;
    exe.run(images(0));
    EXPECT_NE(parameter_bytes(exe), before);
  }
}

TEST(RejectionReason, NamesNoFeedForAComputedIndex) {
  Program net("computed");
  const Value x = net.data("x", {kBatch, 3}, f32);
  net.output("y", take_along_axis(x, cast(max(x, {.axes = {1}, .keep_dims = true}), i64)));
  Executor exe(net, cpu(), {.batch = 1});
  const Batch batch{1, {{"x", Tensor::of<float>({1, 3}, std::vector<float>{1, 7, 2})}}, 0};
  expect_user_error([&] { exe.run(batch); },
                    "take_along_axis: index 7 is out of range [0, 3); the step");
}

TEST(RejectionReason, OfAnIndexThatDependsOnNoData) {
  for (const int64_t positions : {3, 4}) {
    Program net("positions");
    const Value x = net.data("x", {kBatch, positions}, f32);
    const Value w = net.parameter("w", {3}, Init::constant(1));
    const Type type{i64, {positions}, {}};
    net.output("y", x + gather(w, arange(net.ir().main(), {.type = type})));
    Executor exe(net, cpu(), {.batch = 1});
    const auto run = [&] { exe.run({{"x", Tensor(f32, {1, positions})}}); };
    if (positions == 3) {
      run();
    } else {
      expect_user_error(run, "gather: index 3 is out of range [0, 3)");
    }
  }
}

TEST(RejectionReason, NamesNoRangeWhereAnIndexAddressesSeveralDimensions) {
  for (const bool scatters : {false, true}) {
    Program net("dimensions");
    const Value x = net.data("x", {3, 5}, f32);
    const Value i = net.data("i", {kBatch, 2}, i64);
    const Value updates = net.data("updates", {kBatch}, f32);
    net.output("y", scatters ? scatter_nd(x, i, updates) : gather_nd(x, i));
    Executor exe(net, cpu(), {.batch = 1});
    const Batch batch{1,
                      {{"x", Tensor(f32, {3, 5})},
                       {"i", Tensor::of<int64_t>({1, 2}, std::vector<int64_t>{1, 7})},
                       {"updates", Tensor(f32, {1})}},
                      0};
    expect_user_error([&] { exe.run(batch); },
                      "value 7 of feed 'i' is out of range, in sample 0 of the batch");
  }
}

TEST(RejectionReason, NeverMixesTheIndicesOfTwoFeeds) {
  constexpr int64_t kRows = 20000;
  Program net("two");
  const Value x = net.data("x", {kBatch, 3}, f32), z = net.data("z", {kBatch, 3}, f32);
  const Value i = net.data("i", {kBatch, 1}, i64), j = net.data("j", {kBatch, 1}, i64);
  net.output("y", take_along_axis(x, i) + take_along_axis(z, j));
  Executor exe(net, cpu(), {.batch = kRows});
  Tensor first(i64, {kRows, 1}), second(i64, {kRows, 1});
  first.as<int64_t>()[kRows - 1] = 7;
  std::fill_n(second.as<int64_t>().begin(), kRows, 8);
  const Tensor rows(f32, {kRows, 3});
  const Batch batch{kRows, {{"x", rows}, {"z", rows}, {"i", first}, {"j", second}}, 0};
  try {
    exe.run(batch);
    FAIL() << "indices out of range";
  } catch (const UserError& e) {
    const std::string message = e.what();
    EXPECT_TRUE(message.find("value 7 of feed 'i' is out of range [0, 3), in sample 19999") !=
                    std::string::npos ||
                message.find("value 8 of feed 'j' is out of range [0, 3), in sample 0") !=
                    std::string::npos)
        << message;
  }
}

/// The logits are a parameter, so the check can share a kernel with the updates.
Program labelled_rows(const std::string& optimizer) {
  return Program(ir::parse(R"(program @rows {
  %k = data "k" : i64[4]
  %w = param "w" {init = "constant", value = 1.0} : f32[4, 3]
  %l = softmax_cross_entropy(%w, %k) : f32[4]
  %loss = sum(%l) : f32[]
  train(%loss) {optimizer = ")" +
                               optimizer +
                               R"(", lr = 1.0}
  output "loss" = %loss
})",
                           "rows.fir"));
}

TEST(RejectionReason, ACheckInTheKernelOfAnUpdateComesInTime) {
  const auto rows = [](int64_t last) {
    Tensor k(i64, {4});
    k.as<int64_t>()[3] = last;
    return Batch{1, {{"k", k}}, 0};
  };
  const auto expect_unchanged = [&](Executor& exe, const std::string& optimizer) {
    exe.run(rows(2));
    const auto before = state_bytes(exe, optimizer, {"update"});
    expect_user_error(
        [&] { exe.run(rows(3)).wait(); },
        "softmax_cross_entropy: value 3 of feed 'k' is out of range [0, 3); the step");
    EXPECT_EQ(state_bytes(exe, optimizer, {"update"}), before) << optimizer;
    exe.run(rows(2));
    EXPECT_NE(state_bytes(exe, optimizer, {"update"}), before) << optimizer;
  };
  testing::reset_host_gpu({});
  for (const std::string& optimizer : optimizer_names()) {
    for (const bool fuse : {true, false}) {
      SCOPED_TRACE(fuse ? "fused" : "not fused");
      const Program net = labelled_rows(optimizer);
      const ExecutorOptions options{.batch = 1, .debug = {.fuse = fuse}};
      Executor here(net, cpu(), options);
      expect_unchanged(here, optimizer);
      Executor there(net, gpu_device(testing::host_gpu_table(), {}), options);
      expect_unchanged(there, optimizer);
    }
  }
}

/// The index check may run after a mean over the batch, as the update does.
Program check_behind_a_mean(bool added) {
  Program net("behind");
  const Value x = net.data("x", {kBatch, 4}, f32), z = net.data("z", {kBatch, 2}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  const Value m = mean(linear(z, {.units = 1}));
  const Value picked = reshape(take_along_axis(x, reshape(label, {kBatch, 1})), {kBatch});
  net.output("picked", added ? picked + m : picked * m);
  const Value loss = m * m;
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  return net;
}

TEST(RejectionReason, ACheckBehindAReductionOverTheBatchComesInTime) {
  testing::reset_host_gpu({});
  for (const bool added : {false, true}) {
    for (const bool on_gpu : {false, true}) {
      const Program net = check_behind_a_mean(added);
      const ExecutorOptions options{.batch = 3};
      Executor exe = on_gpu ? Executor(net, gpu_device(testing::host_gpu_table(), {}), options)
                            : Executor(net, cpu(), options);
      Tensor x(f32, {3, 4}), z(f32, {3, 2}), label(i64, {3});
      for (float& f : z.as<float>()) f = 1;
      const Batch batch{3, {{"x", x}, {"z", z}, {"label", label}}, 0};
      exe.run(batch);
      const auto before = parameter_bytes(exe);
      label.as<int64_t>()[1] = 9;
      expect_user_error([&] { exe.run(batch).wait(); }, "the step was not applied");
      EXPECT_EQ(parameter_bytes(exe), before) << (on_gpu ? "cuda" : "cpu");
      label.as<int64_t>()[1] = 1;
      exe.run(batch).wait();
      EXPECT_NE(parameter_bytes(exe), before) << "goes on after a bad batch";
    }
  }
}

TEST(RejectionReason, NamesTheUsersOpAndLine) {
  const Program net(testing::conv_net({.size = 20, .first = 3, .second = 5}));
  Executor exe(net, cpu(), {.batch = kImages});
  expect_user_error([&] { exe.run(images(10)); }, "small_programs.cpp:");
  expect_user_error([&] { exe.run(images(10)); }, "softmax_cross_entropy: value 10");
}

}  // namespace
}  // namespace fluid::rejection_test
