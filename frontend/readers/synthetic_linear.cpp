#include "frontend/readers/kind.h"
#include "frontend/readers/split_mix64.h"

namespace fluid {
namespace {

constexpr int64_t kRows = 1'000'000;

/// Generates a linear regression dataset: y = x . (2, -3) + 10 + noise. x is uniform in [-5, 5]^2;
/// the noise is normal with standard deviation 2.
Dataset synthetic_linear(int64_t rows, uint64_t seed) {
  Tensor x(DType::f32, {rows, 2}), y(DType::f32, {rows, 1});
  SplitMix64 random(seed);
  auto xs = x.as<float>();
  auto ys = y.as<float>();
  for (size_t i = 0; i < ys.size(); ++i) {
    const double a = random.uniform(-5, 5), b = random.uniform(-5, 5);
    xs[2 * i] = static_cast<float>(a);
    xs[2 * i + 1] = static_cast<float>(b);
    ys[i] = static_cast<float>(2 * a - 3 * b + 10 + 2 * random.normal());
  }
  Dataset data;
  data.columns.emplace_back("x", std::move(x));
  data.columns.emplace_back("y", std::move(y));
  return data;
}

}  // namespace

DataKind synthetic_linear_kind() {
  return {.name = "synthetic-linear",
          .usage = "synthetic-linear",
          .doc =
              "y = x . (2, -3) + 10 + Gaussian noise of standard deviation 2: columns x f32[2] and "
              "y f32[1]; n=N samples, seed=N",
          .needs_path = false,
          .full_batch = true,
          .options = {"n", "seed"},
          .open_source = in_memory([](const DataArgs& args) {
            const int64_t rows = args.get_integer("n", kRows, 1);
            if (rows > 1000 * kRows) args.fail("n is over 1e9");
            return synthetic_linear(rows, static_cast<uint64_t>(args.get_integer("seed", 0, 0)));
          })};
}

}  // namespace fluid
