#include "tests/support/training.h"

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "tests/support/golden.h"

namespace fluid {

Program linear_regression_program(double lr) {
  Program net("linear_regression");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const Value y = net.data("y", {kBatch, 1}, f32);
  const Value loss = mean(square_error(linear(x, {.units = 1}), y));
  net.output("loss", loss);
  minimize(loss, Adam{.lr = lr});
  return net;
}

Batch linear_batch(int64_t n) {
  const std::vector<double> x = testing::golden_uniform(100, 2 * n);
  const std::vector<double> noise = testing::golden_uniform(101, 12 * n);
  Tensor xs(f32, {n, 2}), ys(f32, {n, 1});
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const double x0 = 10 * x[2 * i] - 5, x1 = 10 * x[2 * i + 1] - 5;
    double sum = 0;
    for (size_t k = 0; k < 12; ++k) sum += noise[12 * i + k];
    xs.as<float>()[2 * i] = static_cast<float>(x0);
    xs.as<float>()[2 * i + 1] = static_cast<float>(x1);
    ys.as<float>()[i] = static_cast<float>(2 * x0 - 3 * x1 + 10 + 2 * (sum - 6));
  }
  return {.size = n, .columns = {{"x", xs}, {"y", ys}}, .id = 1};
}

std::vector<std::byte> parameter_bytes(Executor& exe) {
  std::vector<std::byte> bytes;
  for (const std::string& name : exe.parameters()) {
    const Tensor t = exe.parameter(name);
    const auto* data = static_cast<const std::byte*>(t.data());
    bytes.insert(bytes.end(), data, data + t.bytes());
  }
  return bytes;
}

}  // namespace fluid
