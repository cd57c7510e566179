// Groups of parameters: rates and decay against PyTorch's parameter groups, and what freezing
// saves.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "executor/executor.h"
#include "frontend/examples/resnet.h"
#include "tests/support/count_of.h"
#include "tests/support/errors.h"
#include "tests/support/golden_training.h"

namespace fluid::parameter_groups_test {
namespace {

constexpr int64_t kSamples = 6, kFeatures = 3, kHidden = 4, kUnits = 2, kSteps = 6;

const nlohmann::json& golden() {
  static const nlohmann::json json = testing::golden_json("finetune.json");
  return json;
}

/// The network and the groups of tests/golden/finetune.py.
Program small_network(std::optional<bool> freeze_statistics) {
  Program net("small");
  const Value x = net.data("x", {kBatch, kFeatures}, f64), y = net.data("y", {kBatch, kUnits}, f64);
  const Value h = batch_norm(linear(x, {.units = kHidden}));
  const Value loss = mean(square(linear(tanh(h), {.units = kUnits}) - y));
  net.output("loss", loss);
  std::vector<ParameterGroup> groups = {
      {.pattern = "fc*", .trainable = false},
      {.pattern = "fc1", .trainable = true, .lr_scale = 10, .decay_scale = 0.5},
      {.pattern = "*.b", .lr_scale = 1, .decay_scale = 0}};
  if (freeze_statistics) {
    groups.push_back({.pattern = "bn?", .freeze_statistics = freeze_statistics});
  }
  minimize(loss, AdamW{.lr = 0.01, .weight_decay = 0.1}, {.groups = groups});
  return net;
}

void expect_golden(std::optional<bool> freeze_statistics, const std::string& name) {
  Executor exe(small_network(freeze_statistics), cpu(), {.batch = kSamples});
  testing::set_golden_start(exe, {"fc0.w", "fc0.b", "fc1.w", "fc1.b"});
  for (uint64_t step = 0; step < kSteps; ++step) {
    exe.run(testing::golden_batch(step, kSamples, kFeatures, kUnits));
  }
  for (const auto& [parameter, values] : golden().at(name).items()) {
    testing::expect_golden_parameters(exe, {parameter}, values);
  }
}

TEST(ParameterGroups, FollowPyTorchsParameterGroups) { expect_golden({}, "batch_statistics"); }

TEST(ParameterGroups, FreezeTheRunningStatisticsAsEvalModeInPyTorch) {
  expect_golden(true, "frozen_statistics");
}

TEST(ParameterGroups, ReplaceInitialisersAndKeepOtherSettings) {
  const auto layer = [](const Init& init) {
    Program net("layer");
    const Value x = net.data("x", {kBatch, kFeatures}, f32);
    net.output("y", linear(x, {.units = kUnits, .weight_init = init}, Loc()));
    set_parameter_groups(net, {{.pattern = "fc0.w", .lr_scale = 2, .l2 = 0.5}}, Loc());
    return net;
  };
  Program net = layer(Init::kaiming_normal(0.5, FanMode::out));
  const std::string before = net.text();
  EXPECT_NE(before, layer(Init::orthogonal(2)).text());
  expect_user_error([&] { set_parameter_groups(net, {{.pattern = "*", .init = Init::dirac()}}); },
                    "dirac");
  EXPECT_EQ(net.text(), before);
  set_parameter_groups(net, {{.pattern = "fc0.w", .init = Init::orthogonal(2)}}, Loc());
  EXPECT_EQ(net.text(), layer(Init::orthogonal(2)).text());
}

TEST(ParameterGroups, SurviveAFileAndCanBeUndone) {
  const Program net = small_network(true);
  const std::string text = net.text();
  EXPECT_NE(text.find("frozen = true"), std::string::npos) << text;
  EXPECT_NE(text.find("decay_scale = 0.5"), std::string::npos) << text;
  Program plain = small_network(true);
  set_parameter_groups(plain, {{.pattern = "*",
                                .trainable = true,
                                .lr_scale = 1,
                                .decay_scale = 1,
                                .freeze_statistics = false}});
  for (const char* setting : {"trainable", "lr_scale", "decay_scale", "frozen"}) {
    EXPECT_EQ(plain.text().find(setting), std::string::npos) << setting;
  }
}

Program resnet(const std::vector<ParameterGroup>& groups) {
  Program net("resnet50");
  const Value images = net.data("image", {kBatch, 3, 64, 64}, f32);
  const Value loss = mean(square(resnet50(images, {.width = 16, .blocks = {3, 4, 6, 3}})));
  net.output("loss", loss);
  minimize(loss, Momentum{.lr = 0.1, .momentum = 0.9}, {.groups = groups});
  return net;
}

TEST(ParameterGroups, BackwardStopsAboveTheFrozenLayers) {
  const int64_t batch = 16;
  Executor whole(resnet({}), cpu(), {.batch = batch});
  Executor last(resnet({{.pattern = "*", .trainable = false},
                        {.pattern = "{layer4.2,fc}", .trainable = true}}),
                cpu(), {.batch = batch});
  const std::string all = whole.text(Mode::train, batch), some = last.text(Mode::train, batch);
  // The last block has three convolutions; the first one needs no gradient of its input.
  EXPECT_EQ(testing::count_of(all, "conv2d_grad_filter("), 53);
  EXPECT_EQ(testing::count_of(some, "conv2d_grad_filter("), 3);
  EXPECT_EQ(testing::count_of(all, "conv2d_grad_input("), 52);
  EXPECT_EQ(testing::count_of(some, "conv2d_grad_input("), 2);
  int64_t trained = 0, moments = 0;
  for (const std::string& name : last.parameters()) {
    const bool trains = (name.starts_with("layer4.2.") || name.starts_with("fc.")) &&
                        name.find("running") == std::string::npos;
    if (trains) trained += last.parameter(name).bytes();
  }
  for (const SnapshotVariable& v : last.snapshot().variables) {
    if (v.kind == VariableKind::optimizer) moments += v.value.bytes();
  }
  EXPECT_EQ(moments, trained);
  // 0.11 in a whole ResNet-50; workspaces weigh more in this small one.
  EXPECT_LE(last.memory().total, 0.35 * static_cast<double>(whole.memory().total));
}

}  // namespace
}  // namespace fluid::parameter_groups_test
