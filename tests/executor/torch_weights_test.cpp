// Weights that PyTorch saved (tests/golden/torch_weights.py), in programs with PyTorch's and with
// other names.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "executor/executor.h"
#include "frontend/examples/resnet.h"
#include "frontend/files/npy.h"
#include "tests/support/errors.h"

namespace fluid::torch_weights_test {
namespace {

const std::string kFolder = FLUID_SOURCE_DIR "/tests/golden/torch_weights";
const LoadOptions kPytorch{.layout = ParamsLayout::pytorch};

void expect_outputs(Executor& exe, const std::string& folder, const std::string& name) {
  const Tensor expected = read_npy(folder + "/" + name + "_y.npy");
  const Tensor y = exe.predict({{"x", read_npy(folder + "/" + name + "_x.npy")}})["y"].copy();
  ASSERT_EQ(y.shape(), expected.shape());
  double worst = 0;
  for (int64_t i = 0; i < y.numel(); ++i) {
    worst = std::max(worst, std::abs(y.at(i) - expected.at(i)));
  }
  EXPECT_LE(worst, 1e-4);
  ::testing::Test::RecordProperty("largest_difference", std::to_string(worst));
}

Program resnet(int64_t width, int64_t side) {
  Program net("resnet50");
  const Value x = net.data("x", {kBatch, 3, side, side}, f32);
  net.output("y", resnet50(x, {.width = width, .blocks = {3, 4, 6, 3}}));
  return net;
}

TEST(TorchWeights, OfTorchvisionsResNet50PredictAsInPyTorch) {
  Executor exe(resnet(2, 32), cpu());
  const LoadReport report = exe.load(kFolder + "/resnet50.safetensors", kPytorch);
  EXPECT_EQ(report.loaded.size(), 267U);
  EXPECT_EQ(report.ignored.size(), 53U);
  EXPECT_TRUE(report.missing.empty() && report.unused.empty() && report.mismatched.empty());
  expect_outputs(exe, kFolder, "resnet50");
}

TEST(TorchWeights, OfTheFullResNet50PredictAsInPyTorch) {
  const char* folder = std::getenv("FLUID_TORCH_WEIGHTS");
  if (folder == nullptr) GTEST_SKIP() << "$FLUID_TORCH_WEIGHTS is not set: see torch_weights.py";
  Executor exe(resnet(64, 224), cpu());
  exe.load(std::string(folder) + "/resnet50.safetensors", kPytorch);
  expect_outputs(exe, folder, "resnet50");
}

/// The network of torch_weights.py. `name` gives the name of each layer.
Program layers(const std::function<std::string(const std::string&)>& name, int64_t units = 5) {
  Program net("layers");
  const Value x = net.data("x", {kBatch, 5}, i64);
  Value h = embedding(x, {.rows = 11, .units = 6, .name = name("embedding")});
  h = layer_norm(h + multi_head_attention(h, {.heads = 2, .name = name("attention")}),
                 {.name = name("ln")});
  h = lstm(h, {.units = 4, .layers = 2, .bidirectional = true, .name = name("lstm")}).output;
  h = gru(h, {.units = 5, .name = name("gru")}).states[0];
  net.output("y", linear(h, {.units = units, .name = name("fc")}));
  return net;
}

std::string same(const std::string& name) { return name; }

TEST(TorchWeights, OfLayersWithOtherLayoutsAreConverted) {
  Executor exe(layers(same), cpu());
  EXPECT_EQ(exe.load(kFolder + "/layers.safetensors", kPytorch).loaded.size(),
            exe.parameters().size());
  expect_outputs(exe, kFolder, "layers");
}

TEST(TorchWeights, AreRenamedByMapsInOrder) {
  const auto inside = [](const std::string& name) {
    return name == "fc" ? "head" : "encoder." + name;
  };
  Executor exe(layers(inside), cpu());
  LoadOptions options = kPytorch;
  options.maps = {"(*)=encoder.$1", "encoder.fc.(*)=head.$1"};
  const LoadReport report = exe.load(kFolder + "/layers.safetensors", options);
  EXPECT_EQ(report.loaded.size(), exe.parameters().size());
  expect_outputs(exe, kFolder, "layers");
  options.maps = {"*=one"};
  expect_user_error([&] { exe.load(kFolder + "/layers.safetensors", options); },
                    "layers.safetensors: the maps give 'attention.in_proj_bias' and "
                    "'attention.in_proj_weight' one name, 'one'");
}

TEST(TorchWeights, OfBiasesThatDifferAreRejected) {
  Executor exe(layers(same), cpu());
  LoadOptions options = kPytorch;
  options.maps = {"lstm.bias_hh_l0=", "fc.bias=lstm.bias_hh_l0"};
  expect_user_error([&] { exe.load(kFolder + "/layers.safetensors", options); },
                    "layers.safetensors: 'lstm.bias_ih_l0' is f32[16], but 'lstm.bias_hh_l0' is "
                    "f32[5]; both are biases of one layer");
}

TEST(TorchWeights, ThatFitInPartAreReported) {
  Executor exe(layers(same, 3), cpu());
  const Tensor before = exe.parameter("fc.w");
  LoadOptions options = kPytorch;
  expect_user_error([&] { exe.load(kFolder + "/layers.safetensors", options); },
                    "'fc.bias' is given as f32[5], but the parameter 'fc.b' is f32[3]");
  options.partial = true;
  options.maps = {"ln.(*)=norm.$1", "gru.*="};
  const LoadReport report = exe.load(kFolder + "/layers.safetensors", options);
  EXPECT_EQ(report.missing,
            (std::vector<std::string>{"gru.layer0.b", "gru.layer0.c", "gru.layer0.u",
                                      "gru.layer0.w", "ln.bias", "ln.scale"}));
  EXPECT_EQ(report.unused.size(), 2U + 4U);
  ASSERT_EQ(report.mismatched.size(), 2U);
  EXPECT_EQ(report.mismatched[0].file_name, "fc.bias");
  EXPECT_TRUE(states(report.text(),
                     "6 missing: 'ln.scale' 2 of another shape 'fc.bias' f32[5] 'fc.b' f32[3] 6 "
                     "unused: 'ln.weight'"))
      << report.text();
  const Tensor after = exe.parameter("fc.w");
  for (int64_t i = 0; i < after.numel(); ++i) EXPECT_EQ(after.at(i), before.at(i));
}

TEST(TorchWeights, WithoutAnythingThatFitsAreRejected) {
  Program net("net");
  net.output("y", linear(net.data("x", {kBatch, 3}, f32), {.units = 2, .name = "head"}));
  Executor exe(net, cpu());
  LoadOptions options{.layout = ParamsLayout::pytorch, .partial = true};
  expect_user_error(
      [&] { exe.load(kFolder + "/layers.safetensors", options); },
      "no tensor fits a parameter of the program; the program has 'head.w', 'head.b'");
}

}  // namespace
}  // namespace fluid::torch_weights_test
