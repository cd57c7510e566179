// Spectral normalisation against PyTorch's, which tests/golden/spectral_norm.py recorded.

#include "frontend/spectral_norm.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "tests/support/all_within.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace fluid::spectral_norm_test {
namespace {

using testing::golden_uniform;

/// The streams of the script.
constexpr uint64_t kWeight = 1, kFactor = 2, kLeft = 3, kRight = 4;

Tensor numbers(uint64_t stream, const std::vector<int64_t>& shape) {
  Tensor t(f64, shape);
  const std::vector<double> uniform = golden_uniform(stream, t.numel());
  for (size_t i = 0; i < uniform.size(); ++i) t.as<double>()[i] = 2 * uniform[i] - 1;
  return t;
}

/// Minimizes the sum of factor * w / sigma.
Program normalising_program(const std::vector<int64_t>& shape, const SpectralNorm& options) {
  Program net("spectral");
  Shape extents;
  for (const int64_t n : shape) extents.emplace_back(n);
  const Value w = net.parameter("w", extents, Init::zeros(), {.dtype = f64});
  const Value normalised = spectral_norm(w, options);
  const Value loss = sum(normalised * net.data("factor", extents, f64));
  net.output("normalised", normalised);
  net.output("gradient", gradients(loss, {w}).at(0));
  minimize(loss, SGD{.lr = 0.1});
  return net;
}

TEST(SpectralNorm, IsPyTorchs) {
  const nlohmann::json json = testing::golden_json("spectral_norm.json");
  for (const auto& golden : json.at("cases")) {
    const std::vector<int64_t> shape = golden.at("shape");
    const SpectralNorm options = {
        .dim = golden.at("dim"), .iterations = golden.at("iterations"), .eps = golden.at("eps")};
    Executor exe(normalising_program(shape, options), cpu(), {.batch = 1});
    exe.set_parameter("w", numbers(kWeight, shape));
    for (const auto& [name, stream] : {std::pair{"u", kLeft}, std::pair{"v", kRight}}) {
      const std::string state = std::string("spectral_norm0.") + name;
      exe.set_parameter(state, numbers(stream, exe.parameter(state).shape()));
    }
    const Batch batch = {.size = 1, .columns = {{"factor", numbers(kFactor, shape)}}};
    for (size_t step = 0; step < golden.at("weights").size(); ++step) {
      const OutputViews out = exe.run(batch);
      testing::expect_golden(out["normalised"], golden.at("weights")[step], "w / sigma");
      testing::expect_golden(out["gradient"], golden.at("gradients")[step], "gradient");
    }
    for (int i = 0; i < 2; ++i) {
      testing::expect_golden(exe.eval(batch)["normalised"], golden.at("eval"), "w / sigma in eval");
    }
    testing::expect_golden(exe.parameter("spectral_norm0.u"), golden.at("u"), "u");
    testing::expect_golden(exe.parameter("spectral_norm0.v"), golden.at("v"), "v");
  }
}

/// A convolution and a linear layer whose weights are normalised.
Program network() {
  Program net("net");
  const Value x = net.data("x", {kBatch, 2, 5, 5}, f32);
  const Value w = net.parameter("w", {4, 2, 3, 3}, Init::kaiming_uniform());
  const Value h =
      conv2d(x, {.filters = 4, .kernel = 3, .act = Act::relu, .weight = spectral_norm(w)});
  const Value v = net.parameter("v", {36, 3}, Init::kaiming_uniform());
  const Value y = linear(flatten(h), {.units = 3, .weight = spectral_norm(v, {.dim = -1})});
  const Value loss = mean(square(y - 1.0));
  net.output("loss", loss);
  minimize(loss, Adam{.lr = 0.01});
  return net;
}

Batch batch_of(int64_t samples, float last = 0) {
  Tensor x(f32, {samples, 2, 5, 5});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i * i % 23) / 23;
  }
  if (last != 0) x.as<float>().back() = last;
  return {.size = samples, .columns = {{"x", x}}};
}

TEST(SpectralNorm, VectorsBelongToTheFileOfParametersAndEvalLeavesThem) {
  const TempDir dir;
  Executor exe(network(), cpu());
  const Batch batch = batch_of(4);
  for (int i = 0; i < 20; ++i) exe.run(batch);
  const double loss = exe.eval(batch)["loss"].item();
  EXPECT_EQ(exe.eval(batch)["loss"].item(), loss);
  exe.save(dir.file("net.safetensors"));
  Executor other(network(), cpu());
  other.load(dir.file("net.safetensors"));
  EXPECT_EQ(other.eval(batch)["loss"].item(), loss);
  EXPECT_LT(exe.run(batch)["loss"].item(), 0.9);
}

TEST(SpectralNorm, SkippedStepsLeaveTheVectors) {
  Executor exe(network(), cpu(), {.debug = {.check_finite = true}});
  exe.run(batch_of(4));
  const Tensor u = exe.parameter("spectral_norm0.u");
  exe.run(batch_of(4, INFINITY));
  const Tensor same = exe.parameter("spectral_norm0.u");
  for (int64_t i = 0; i < u.numel(); ++i) EXPECT_EQ(same.at(i), u.at(i));
}

TEST(SpectralNorm, TrainsInMicroBatchesAndMixedPrecision) {
  for (const AmpLevel level : {AmpLevel::o1, AmpLevel::o2}) {
    Executor exe(network(), cpu(),
                 {.micro_batches = 2, .precision = {.amp = AmpOptions{.level = level}}});
    const Batch batch = batch_of(4);
    const double before = exe.run(batch)["loss"].item();
    for (int i = 0; i < 20; ++i) exe.run(batch);
    EXPECT_LT(exe.run(batch)["loss"].item(), before);
  }
}

TEST(SpectralNorm, RejectsOtherWeights) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 3}, f32), b = net.parameter("b", {3}, Init::zeros());
  const Value w = net.parameter("w", {3, 2}, Init::zeros());
  expect_user_error([&] { spectral_norm(x); }, "spectral_norm: the weight is f32[?, 3]");
  expect_user_error([&] { spectral_norm(b); }, "spectral_norm: the weight is f32[3]");
  expect_user_error([&] { spectral_norm(w, {.dim = 2}); }, "f32[3, 2] has no dimension 2");
  expect_user_error([&] { spectral_norm(w, {.iterations = 0}); },
                    "power_iteration: attribute 'iterations' must be positive");
}

}  // namespace
}  // namespace fluid::spectral_norm_test
