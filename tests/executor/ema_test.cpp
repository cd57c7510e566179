// Exponential moving averages of the parameters, against PyTorch's AveragedModel, which
// tests/golden/ema.py recorded.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "executor/trainer/trainer.h"
#include "frontend/fluid.h"
#include "tests/support/all_within.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::ema_test {
namespace {

constexpr int64_t kSamples = 6;

Tensor numbers(uint64_t stream, const std::vector<int64_t>& shape, DType dtype = f64) {
  Tensor t(f64, shape);
  const std::vector<double> uniform = testing::golden_uniform(stream, t.numel());
  for (size_t i = 0; i < uniform.size(); ++i) t.as<double>()[i] = 2 * uniform[i] - 1;
  return t.cast(dtype);
}

/// Linear regression, as in the script.
Program regression(DType dtype, const MinimizeOptions& options) {
  Program net("regression");
  const Value x = net.data("x", {kBatch, 3}, dtype), y = net.data("y", {kBatch, 2}, dtype);
  const Value loss = mean(square(linear(x, {.units = 2}) - y));
  net.output("loss", loss);
  minimize(loss, Adam{.lr = 0.1}, options);
  return net;
}

Program averaging_program(DType dtype = f32) { return regression(dtype, {.ema = {.decay = 0.9}}); }

Batch batch_of(DType dtype = f32) {
  return {.size = kSamples,
          .columns = {{"x", numbers(2, {kSamples, 3}, dtype)},
                      {"y", numbers(3, {kSamples, 2}, dtype)}}};
}

std::vector<double> values(const Tensor& t) {
  std::vector<double> all;
  for (int64_t i = 0; i < t.numel(); ++i) all.push_back(t.at(i));
  return all;
}

TEST(Ema, IsPyTorchs) {
  const nlohmann::json golden = testing::golden_json("ema.json");
  Executor exe(averaging_program(f64), cpu(), {.batch = kSamples});
  exe.set_parameter("fc0.w", numbers(0, {3, 2}));
  exe.set_parameter("fc0.b", numbers(1, {2}));
  const Batch batch = batch_of(f64);
  for (const auto& step : golden.at("steps")) {
    exe.run(batch);
    testing::expect_golden(exe.parameter("fc0.w.ema"), step.at("w"), "w");
    testing::expect_golden(exe.parameter("fc0.b.ema"), step.at("b"), "b");
  }
  exe.use_averages(true);
  EXPECT_NEAR(exe.eval(batch)["loss"].item(), golden.at("loss").get<double>(), 1e-9);
  exe.use_averages(false);
  testing::expect_golden(exe.parameter("fc0.w"), golden.at("w"), "the parameter itself");
}

TEST(Ema, IsUsedUntilTheParametersComeBack) {
  const TempDir dir;
  Executor exe(averaging_program(), cpu(), {.batch = kSamples});
  const Batch batch = batch_of();
  for (int i = 0; i < 5; ++i) exe.run(batch);
  const std::vector<double> own = values(exe.parameter("fc0.w"));
  const std::vector<double> average = values(exe.parameter("fc0.w.ema"));
  const double loss = exe.eval(batch)["loss"].item();
  for (int i = 0; i < 2; ++i) exe.use_averages(true);  // the second call changes nothing
  EXPECT_TRUE(exe.uses_averages());
  EXPECT_EQ(values(exe.parameter("fc0.w")), average);
  const double average_loss = exe.eval(batch)["loss"].item();
  EXPECT_NE(average_loss, loss);
  exe.save(dir.file("averages.safetensors"));
  exe.use_averages(false);
  EXPECT_FALSE(exe.uses_averages());
  EXPECT_EQ(values(exe.parameter("fc0.w")), own);
  EXPECT_EQ(exe.eval(batch)["loss"].item(), loss);
  exe.run(batch);

  Executor plain(regression(f32, {}), cpu());
  plain.load(dir.file("averages.safetensors"));
  EXPECT_EQ(plain.eval(batch)["loss"].item(), average_loss);
}

TEST(Ema, OfAParameterBeforeTheFirstUpdateIsTheParameter) {
  Executor exe(averaging_program(), cpu(), {.batch = kSamples});
  const double loss = exe.eval(batch_of())["loss"].item();
  exe.use_averages(true);
  EXPECT_EQ(exe.eval(batch_of())["loss"].item(), loss);
}

TEST(Ema, CallsThatTrainOrSetVariablesWaitForTheParameters) {
  const TempDir dir;
  Executor exe(averaging_program(), cpu(), {.batch = kSamples, .debug = {.check_finite = true}});
  const Batch batch = batch_of();
  exe.run(batch);
  exe.use_averages(true);
  exe.save(dir.file("averages.safetensors"));
  const std::string why = ": the averages of the parameters are in use";
  expect_user_error([&] { exe.run(batch); }, "run()" + why);
  expect_user_error([&] { exe.load(dir.file("averages.safetensors")); }, "load()" + why);
  expect_user_error([&] { exe.set_parameter("fc0.b", Tensor(f32, {2})); }, "set_parameter()" + why);
  expect_user_error([&] { exe.snapshot(); }, "snapshot()" + why);
  expect_user_error([&] { exe.restore({}); }, "restore()" + why);
  expect_user_error([&] { exe.broadcast(); }, "broadcast()" + why);
  expect_user_error([&] { exe.first_nonfinite(batch); }, "first_nonfinite()" + why);
}

TEST(Ema, NeedsARecipeWithAveragesAndAPreparedStep) {
  Executor without(regression(f32, {}), cpu(), {.batch = kSamples});
  expect_user_error([&] { without.use_averages(true); }, "the recipe keeps no averages");
  Executor unprepared(averaging_program(), cpu());
  expect_user_error([&] { unprepared.use_averages(true); },
                    "use_averages(): prepare() a training step before");
  for (const double decay : {1.0, -0.5}) {
    expect_user_error([&] { regression(f32, {.ema = {.decay = decay}}); },
                      "attribute 'ema_decay' must lie in [0.0, 1.0)");
  }
}

TEST(Ema, BelongsToCheckpoints) {
  Executor exe(averaging_program(), cpu(), {.batch = kSamples});
  const Batch batch = batch_of();
  for (int i = 0; i < 3; ++i) exe.run(batch);
  Executor resumed(averaging_program(), cpu(), {.batch = kSamples});
  EXPECT_EQ(resumed.restore(exe.snapshot()), "");
  for (Executor* e : {&exe, &resumed}) e->run(batch);
  EXPECT_EQ(values(resumed.parameter("fc0.w.ema")), values(exe.parameter("fc0.w.ema")));
  Executor other(regression(f32, {}), cpu(), {.batch = kSamples});
  expect_user_error([&] { other.restore(exe.snapshot()); }, "holds 'fc0.b.ema'");
}

TEST(Ema, FollowsMasterWeightsInF32) {
  Executor exe(averaging_program(), cpu(),
               {.batch = kSamples, .precision = {.amp = AmpOptions{.level = AmpLevel::o2}}});
  const Batch batch = batch_of();
  exe.run(batch);
  EXPECT_EQ(exe.parameter("fc0.w.ema").dtype(), f32);
  EXPECT_EQ(values(exe.parameter("fc0.w.ema")), values(exe.parameter("fc0.w")));
  exe.run(batch);
  const double loss = exe.eval(batch)["loss"].item();
  exe.use_averages(true);
  EXPECT_NE(exe.eval(batch)["loss"].item(), loss) << "the half-precision weights follow";
  exe.use_averages(false);
  EXPECT_EQ(exe.eval(batch)["loss"].item(), loss);
}

TEST(Ema, OfHalfPrecisionParametersIsF32) {
  Executor exe(averaging_program(f16), cpu(), {.batch = kSamples});
  for (int i = 0; i < 4; ++i) exe.run(batch_of(f16));
  EXPECT_EQ(exe.parameter("fc0.w.ema").dtype(), f32);
  const std::vector<double> own = values(exe.parameter("fc0.w"));
  exe.use_averages(true);
  EXPECT_NE(values(exe.parameter("fc0.w")), own);
  exe.use_averages(false);
  EXPECT_EQ(values(exe.parameter("fc0.w")), own);
}

Dataset samples() { return {.columns = batch_of().columns, .source = "samples"}; }

TEST(Ema, TrainersValidateAndSaveAverages) {
  const TempDir dir;
  const std::string file = dir.file("net.safetensors"), best = dir.file("best.safetensors");
  Trainer trainer(averaging_program(), cpu(), {.seed = 3});
  Reader train(samples(), {.batch = 2}), validation(samples(), {.batch = kSamples});
  const History history = trainer.fit(train, {.epochs = 3,
                                              .validation = &validation,
                                              .averages = true,
                                              .save = file,
                                              .save_best = best,
                                              .notice = {}});
  Executor& exe = trainer.executor();
  EXPECT_FALSE(exe.uses_averages());
  const std::vector<double> average = values(exe.parameter("fc0.w.ema"));
  EXPECT_NE(values(exe.parameter("fc0.w")), average);
  Executor saved(regression(f32, {}), cpu());
  saved.load(file);
  EXPECT_EQ(values(saved.parameter("fc0.w")), average);
  EXPECT_EQ(saved.eval(batch_of())["loss"].item(), history.epochs.back().validation.at(0).second);
  saved.load(best);
  EXPECT_EQ(saved.eval(batch_of())["loss"].item(), history.best->value);
}

TEST(Ema, TrainersRejectARecipeWithoutAverages) {
  const Program net = regression(f32, {});
  expect_user_error([&] { check_fit_options(net, {.averages = true}); },
                    "fit(): the recipe keeps no averages");
}

}  // namespace
}  // namespace fluid::ema_test
