#include "tests/support/gpu_training.h"

#include <algorithm>
#include <cmath>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "tests/support/host_gpu.h"

namespace fluid::testing {

Program small_network(bool dropout) {
  Program net("small");
  const Value image = net.data("image", {kBatch, 2, 6, 6}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  Value h = batch_norm(conv2d(image, {.filters = 4, .kernel = 3, .padding = 1}));
  h = max_pool2d(relu(h), {.kernel = 2, .stride = 2});
  if (dropout) h = fluid::dropout(h, {.p = 0.25});
  const Value logits = linear(flatten(h), {.units = 3});
  const Value loss = mean(softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(logits, label));
  net.output("prob", softmax(logits));
  minimize(loss, Momentum{.lr = 0.05});
  return net;
}

Batch batch_of(int64_t n, int64_t first) {
  Tensor image(f32, {n, 2, 6, 6}), label(i64, {n});
  for (int64_t i = 0; i < image.numel(); ++i) {
    image.as<float>()[static_cast<size_t>(i)] =
        std::sin(static_cast<float>(i + first * 72) * 0.37f);
  }
  for (int64_t i = 0; i < n; ++i) label.as<int64_t>()[static_cast<size_t>(i)] = (i + first) % 3;
  return {.size = n, .columns = {{"image", image}, {"label", label}}};
}

std::unique_ptr<Device> stand_in(const GpuDeviceOptions& options) {
  return gpu_device(host_gpu_table(), options);
}

double worst_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) worst = std::max(worst, std::abs(a.at(i) - b.at(i)));
  return worst;
}

double worst_difference(Executor& a, Executor& b, const std::vector<Batch>& batches) {
  double worst = 0;
  for (const Batch& batch : batches) {
    const double loss = a.run(batch)["loss"].item();
    worst = std::max(worst, std::abs(b.run(batch)["loss"].item() - loss));
  }
  for (const std::string& name : a.parameters()) {
    worst = std::max(worst, worst_difference(a.parameter(name), b.parameter(name)));
  }
  return worst;
}

std::vector<std::byte> state_of(Executor& exe) {
  std::vector<std::byte> bytes;
  for (const auto& [name, kind, value] : exe.snapshot().variables) {
    const auto* data = static_cast<const std::byte*>(value.data());
    bytes.insert(bytes.end(), data, data + (name == "rng" ? 16 : value.bytes()));
  }
  return bytes;
}

}  // namespace fluid::testing
