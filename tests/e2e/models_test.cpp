// The first losses of the examples' models, narrow and on small data, compared with PyTorch's
// (tests/golden/models.py).

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "frontend/examples/bert_tiny.h"
#include "frontend/examples/california_housing.h"
#include "frontend/examples/classifier.h"
#include "frontend/examples/dlrm.h"
#include "frontend/examples/mobilenet_v3_small.h"
#include "frontend/examples/multi_task.h"
#include "frontend/examples/resnet.h"
#include "frontend/examples/unet.h"
#include "frontend/examples/vae.h"
#include "frontend/examples/vit_tiny.h"
#include "tests/support/golden.h"
#include "tests/support/single_steps.h"
#include "tests/support/training.h"

namespace fluid::models_test {
namespace {

constexpr int64_t kSamples = 4;

/// Columns of a batch.
using Columns = std::vector<std::pair<std::string, Tensor>>;

/// Numbers of stream `stream` in [shift, shift + scale), computed in f32.
Tensor floats(uint64_t stream, const std::vector<int64_t>& shape, float scale = 1,
              float shift = 0) {
  Tensor t(f32, shape);
  const auto numbers = testing::golden_uniform(stream, t.numel());
  for (size_t i = 0; i < numbers.size(); ++i) {
    t.as<float>()[i] = static_cast<float>(numbers[i]) * scale + shift;
  }
  return t;
}

/// Integers of stream `stream` in [0, below).
template <class T>
Tensor integers(uint64_t stream, DType dtype, const std::vector<int64_t>& shape, double below) {
  Tensor t(dtype, shape);
  const auto numbers = testing::golden_uniform(stream, t.numel());
  for (size_t i = 0; i < numbers.size(); ++i) t.as<T>()[i] = static_cast<T>(below * numbers[i]);
  return t;
}

Tensor pixels(uint64_t step, int64_t channels, int64_t side) {
  return integers<uint8_t>(300 + step, u8, {kSamples, channels, side, side}, 256);
}

Tensor labels(uint64_t step) { return integers<int64_t>(200 + step, i64, {kSamples}, 10); }

/// Expects PyTorch's losses, in f64 to 1e-9, and to 1e-5 in single steps in f32 from f64's
/// variables. `states`: optimizer states of a parameter, which change in f32 as in f64.
void expect_losses(const std::string& name, const Program& net,
                   const std::vector<std::string>& states,
                   const std::function<Columns(uint64_t step)>& data) {
  std::ifstream file(FLUID_SOURCE_DIR "/tests/golden/models.json");
  const auto expected = nlohmann::json::parse(file).at(name).get<std::vector<double>>();
  Executor exe(net, cpu(), {.batch = kSamples, .precision = {.dtype = f64}});
  set_golden_parameters(exe, net);
  testing::SingleSteps led(net, kSamples, states);
  for (uint64_t step = 0; step < expected.size(); ++step) {
    const auto [in_f64, in_f32] = led.run(exe, {.size = kSamples, .columns = data(step)});
    const double truth = expected[step];
    EXPECT_NEAR(in_f64, truth, 1e-9 * std::abs(truth)) << "f64, step " << step;
    EXPECT_NEAR(in_f32, truth, 1e-5 * std::abs(truth)) << "f32, step " << step;
  }
  led.expect_small_errors(1e-4, 0.1);
}

/// Compares a classifier of CIFAR-10's form.
void expect_classifier(const std::string& name, const Program& net,
                       const std::vector<std::string>& states, int64_t side) {
  expect_losses(name, net, states, [&](uint64_t step) {
    return Columns{{"image", pixels(step, 3, side)}, {"label", labels(step)}};
  });
}

TEST(Models, CaliforniaHousingFollowsPyTorch) {
  Program net("california_housing");
  minimize(record_california_housing(net, {.layers = 2, .width = 8}), Adam{.lr = 0.01});
  expect_losses("california_housing", net, {"m", "v"}, [](uint64_t step) {
    return Columns{{"x", floats(600 + step, {kSamples, 8}, 1024)},
                   {"y", floats(500 + step, {kSamples, 1}, 1 << 19)}};
  });
}

TEST(Models, MultiTaskFollowsPyTorch) {
  Program net("multi_task");
  minimize(record_multi_task(net, {.filters = 4, .width = 8, .parity_weight = 0.25}),
           Adam{.lr = 0.01});
  expect_losses("multi_task", net, {"m", "v"}, [](uint64_t step) {
    return Columns{{"image", pixels(step, 1, 28)}, {"label", labels(step)}};
  });
}

TEST(Models, VaeFollowsPyTorch) {
  Program net("vae");
  const Value image = net.data("image", {kBatch, 1, 8, 8}, f32, {.scale = 1 / 255.f});
  const Value noise = net.data("noise", {kBatch, 3}, f32);
  minimize(record_vae(net, image, [&](Value) { return noise; }, {.width = 12, .latent = 3}),
           Adam{.lr = 0.01});
  expect_losses("vae", net, {"m", "v"}, [](uint64_t step) {
    return Columns{{"image", pixels(step, 1, 8)},
                   {"noise", floats(600 + step, {kSamples, 3}, 4, -2)}};
  });
}

TEST(Models, DlrmFollowsPyTorch) {
  constexpr int64_t kNumbers = 3, kCategories = 4;
  Program net("dlrm");
  const DlrmConfig config{.numeric_features = kNumbers,
                          .categorical_features = kCategories,
                          .rows = 10,
                          .width = 4,
                          .bottom = {8},
                          .top = {8, 8}};
  minimize(record_dlrm(net, config), SGD{.lr = 0.1});
  expect_losses("dlrm", net, {}, [](uint64_t step) {
    const Tensor numbers = floats(600 + step, {kSamples, kNumbers}, 8);
    const Tensor categories = integers<int64_t>(500 + step, i64, {kSamples, kCategories}, 40);
    const Tensor label = labels(step);
    Tensor x(f32, {kSamples, kNumbers + kCategories}), y(f32, {kSamples, 1});
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t row = i / (kNumbers + kCategories), column = i % (kNumbers + kCategories);
      x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(
          column < kNumbers ? numbers.at(row * kNumbers + column)
                            : categories.at(row * kCategories + column - kNumbers));
    }
    for (int64_t i = 0; i < kSamples; ++i) {
      y.as<float>()[static_cast<size_t>(i)] =
          static_cast<float>(label.as<int64_t>()[static_cast<size_t>(i)] % 2);
    }
    return Columns{{"x", x}, {"y", y}};
  });
}

TEST(Models, VitTinyFollowsPyTorch) {
  Program net("vit_tiny");
  const Value logits =
      vit_tiny(net, cifar10_images(net, 16), {.patch = 4, .layers = 2, .heads = 2, .width = 8});
  minimize(record_classifier(net, logits), AdamW{.lr = 0.001});
  expect_classifier("vit_tiny", net, {"m", "v"}, 16);
}

TEST(Models, MobileNetV3SmallFollowsPyTorch) {
  Program net("mobilenet_v3_small");
  const Value logits =
      mobilenet_v3_small(cifar10_images(net, 64), {.width = 0.25, .dropout = 0, .blocks = 5});
  minimize(record_classifier(net, logits), Momentum{.lr = 0.01, .weight_decay = 1e-5});
  expect_classifier("mobilenet_v3_small", net, {"velocity"}, 64);
}

TEST(Models, ResNet50FollowsPyTorch) {
  Program net("resnet50");
  const Value logits = resnet50(cifar10_images(net, 64), {.width = 4, .blocks = {2, 1}});
  minimize(record_classifier(net, logits), Momentum{.lr = 0.01, .weight_decay = 1e-4});
  expect_classifier("resnet50", net, {"velocity"}, 64);
}

TEST(Models, UnetFollowsPyTorch) {
  Program net("unet");
  const Value image = net.data("image", {kBatch, 1, 16, 16}, f32, {.scale = 1 / 255.f});
  const Value label = net.data("label", {kBatch}, i64);
  minimize(record_unet(net, image, label, {.width = 4, .levels = 2}), Adam{.lr = 0.001});
  expect_losses("unet", net, {"m", "v"}, [](uint64_t step) {
    return Columns{{"image", pixels(step, 1, 16)}, {"label", labels(step)}};
  });
}

TEST(Models, BertTinyFollowsPyTorch) {
  constexpr BertConfig kConfig{
      .layers = 2, .heads = 2, .width = 8, .length = 12, .dropout = 0, .mask_rate = 0.3};
  Program net("bert_tiny");
  const Value text = net.data("text", {kBatch, kConfig.length}, u8);
  const Value draw = net.data("draw", {kBatch, kConfig.length}, i64);
  const Value masked = less(draw, scalar_like(draw, 30));
  minimize(record_bert_tiny(net, text, masked, kConfig), AdamW{.lr = 0.001});
  expect_losses("bert_tiny", net, {"m", "v"}, [&](uint64_t step) {
    Tensor bytes = integers<uint8_t>(500 + step, u8, {kSamples, kConfig.length}, 8);
    for (uint8_t& byte : bytes.as<uint8_t>()) byte += 'a';
    return Columns{{"text", bytes},
                   {"draw", integers<int64_t>(600 + step, i64, {kSamples, kConfig.length}, 100)}};
  });
}

}  // namespace
}  // namespace fluid::models_test
