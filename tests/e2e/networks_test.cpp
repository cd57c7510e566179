// The first losses of the larger examples' networks, narrow and on small images, compared with
// PyTorch's (tests/golden/networks.py).

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/examples/alexnet.h"
#include "frontend/examples/classifier.h"
#include "frontend/examples/resnet.h"
#include "tests/support/golden.h"
#include "tests/support/training.h"

namespace fluid::networks_test {
namespace {

constexpr int64_t kSamples = 4;

Batch batch_of(uint64_t step, int64_t side) {
  Tensor image(u8, {kSamples, 3, side, side}), label(i64, {kSamples});
  const auto pixels = testing::golden_uniform(300 + step, image.numel());
  const auto labels = testing::golden_uniform(200 + step, kSamples);
  for (size_t i = 0; i < pixels.size(); ++i) {
    image.as<uint8_t>()[i] = static_cast<uint8_t>(256 * pixels[i]);
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    label.as<int64_t>()[i] = static_cast<int64_t>(10 * labels[i]);
  }
  return {.size = kSamples, .columns = {{"image", image}, {"label", label}}};
}

void expect_losses(const std::string& name, const Program& net, int64_t side) {
  std::ifstream file(FLUID_SOURCE_DIR "/tests/golden/networks.json");
  const auto expected = nlohmann::json::parse(file).at(name).get<std::vector<double>>();
  Executor exe(net, cpu(), {.batch = kSamples, .precision = {.dtype = f64}});
  set_golden_parameters(exe, net);
  for (uint64_t step = 0; step < expected.size(); ++step) {
    const double loss = exe.run(batch_of(step, side))["loss"].item();
    EXPECT_NEAR(loss, expected[step], 1e-7 * std::abs(expected[step])) << "step " << step;
  }
}

TEST(Networks, ResNet18FollowsPyTorch) {
  Program net("resnet18");
  const Value loss = record_classifier(net, resnet18(cifar10_images(net, 16), 8));
  minimize(loss, Momentum{.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4});
  expect_losses("resnet18", net, 16);
}

TEST(Networks, AlexNetFollowsPyTorch) {
  Program net("alexnet");
  const Value images = resize2d(cifar10_images(net, 8), {.output = 131, .mode = "bilinear"});
  minimize(record_classifier(net, alexnet(images, 0, 4)), AdamW{.lr = 1e-4});
  expect_losses("alexnet", net, 8);
}

}  // namespace
}  // namespace fluid::networks_test
