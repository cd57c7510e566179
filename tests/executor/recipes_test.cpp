// Several recipes in a program: a GAN against 10 cycles by PyTorch, which tests/golden/gan.py
// recorded, and in the ways to train.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "executor/trainer/recipe_cycle.h"
#include "executor/trainer/trainer.h"
#include "frontend/examples/gan.h"
#include "passes/loss_scale.h"
#include "passes/recipe.h"
#include "tests/support/all_within.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace fluid::recipes_test {
namespace {

using testing::golden_tensor;

constexpr int64_t kBatchSize = 6, kLatent = 2, kWidth = 5;
const std::vector<RecipeSteps> kCycle = {{"discriminator", 2}, {"generator", 1}};

/// The GAN of tests/golden/gan.py.
Program gan(MinimizeOptions of_d = {}, MinimizeOptions of_g = {}) {
  Program net("gan");
  const Value image = net.data("image", {kBatch, 1, 3, 3}, f64);
  const Value noise = net.data("noise", {kBatch, kLatent}, f64);
  const GanLosses losses = record_gan(net, image, noise, {.latent = kLatent, .width = kWidth});
  of_d.name = "discriminator";
  of_d.parameters = {"discriminator"};
  of_d.schedule = StepDecay{.every = 4, .factor = 0.5};
  of_g.name = "generator";
  of_g.parameters = {"generator"};
  of_g.schedule = Cosine{.steps = 10};
  minimize(losses.discriminator, Adam{.lr = 0.02, .beta1 = 0.5}, of_d);
  minimize(losses.generator, Adam{.lr = 0.05, .beta1 = 0.5}, of_g);
  return net;
}

Tensor image_of(uint64_t step) {
  Tensor image = golden_tensor(100 + step, {kBatchSize, 1, 3, 3});
  for (int64_t i = 0; i < image.numel(); ++i) image.as<double>()[i] = (image.at(i) + 1) / 2;
  return image;
}

/// The samples of the first `steps` steps, in their order.
Dataset samples(int64_t steps) {
  Tensor images(f64, {steps * kBatchSize, 1, 3, 3}), noise(f64, {steps * kBatchSize, kLatent});
  for (int64_t s = 0; s < steps; ++s) {
    const Tensor image = image_of(static_cast<uint64_t>(s));
    const Tensor z = golden_tensor(200 + static_cast<uint64_t>(s), {kBatchSize, kLatent});
    std::ranges::copy(image.as<double>(), images.as<double>().begin() + s * image.numel());
    std::ranges::copy(z.as<double>(), noise.as<double>().begin() + s * z.numel());
  }
  return {{{"image", images}, {"noise", noise}}};
}

const std::vector<std::pair<std::string, std::vector<int64_t>>> kParameters = {
    {"generator.fc0.w", {kLatent, kWidth}}, {"generator.fc0.b", {kWidth}},
    {"generator.fc1.w", {kWidth, 9}},       {"generator.fc1.b", {9}},
    {"discriminator.fc0.w", {9, kWidth}},   {"discriminator.fc0.b", {kWidth}},
    {"discriminator.fc1.w", {kWidth, 1}},   {"discriminator.fc1.b", {1}}};

void set_start(Executor& exe) {
  for (size_t k = 0; k < kParameters.size(); ++k) {
    exe.set_parameter(kParameters[k].first, golden_tensor(k, kParameters[k].second));
  }
}

std::vector<double> values_of(Executor& exe, const std::vector<std::string>& names) {
  std::vector<double> values;
  for (const std::string& name : names) {
    const Tensor value = exe.parameter(name);
    for (int64_t i = 0; i < value.numel(); ++i) values.push_back(value.at(i));
  }
  return values;
}

std::vector<double> parameters_of(Executor& exe) {
  std::vector<std::string> names;
  for (const auto& [name, shape] : kParameters) names.push_back(name);
  return values_of(exe, names);
}

/// Trains `steps` steps of the cycle on `world`; returns the parameters.
std::vector<double> trained(const ExecutorOptions& options, int64_t steps,
                            const std::vector<RecipeSteps>& cycle = kCycle) {
  const World& world = options.distributed.world;
  Trainer trainer(gan(), cpu(), options);
  set_start(trainer.executor());
  Reader train(samples(steps),
               {.batch = kBatchSize / world.size, .rank = world.rank, .world = world.size});
  trainer.fit(train, {.recipes = cycle});
  return parameters_of(trainer.executor());
}

TEST(Recipes, TrainAGanAsPyTorchDoes) {
  const nlohmann::json golden = testing::golden_json("gan.json");
  Executor exe(gan(), cpu());
  set_start(exe);
  for (uint64_t step = 0; step < 30; ++step) {
    SCOPED_TRACE(step);
    const std::string recipe = step % 3 < 2 ? "discriminator" : "generator";
    const OutputViews outputs = exe.run(
        recipe,
        {{"image", image_of(step)}, {"noise", golden_tensor(200 + step, {kBatchSize, kLatent})}});
    EXPECT_NEAR(outputs[recipe + "_loss"].item(), golden.at("losses").at(step).get<double>(), 1e-9);
    EXPECT_NEAR(*outputs.learning_rate(), golden.at("rates").at(step).get<double>(), 1e-9);
    EXPECT_EQ(*exe.learning_rate(recipe), *outputs.learning_rate());
  }
  testing::expect_all_within(parameters_of(exe), golden.at("parameters").get<std::vector<double>>(),
                             1e-9);
  EXPECT_EQ(exe.parameter("discriminator:update").item(), 20);
  EXPECT_EQ(exe.parameter("generator:update").item(), 10);
  const OutputViews drawn =
      exe.eval({{"image", image_of(0)}, {"noise", golden_tensor(200, {kBatchSize, kLatent})}});
  EXPECT_EQ(drawn["image"].shape(), image_of(0).shape());
}

TEST(Recipes, AreACycleOfTheTrainer) {
  const nlohmann::json golden = testing::golden_json("gan.json");
  testing::expect_all_within(trained({}, 30), golden.at("parameters").get<std::vector<double>>(),
                             1e-9);
}

TEST(Recipes, AreTheSameInMicroBatches) {
  testing::expect_all_within(trained({.micro_batches = 3}, 12), trained({}, 12), 1e-9);
}

TEST(Recipes, AreTheSameOnRanks) {
  // Forks before the first executor of this process.
  std::vector<std::string> texts;
  for (const int zero : {0, 1}) {
    const auto rank = [&](const World& world) {
      const std::vector<double> values =
          trained({.threads = 1, .distributed = {.world = world, .zero = zero}}, 12);
      return nlohmann::json(values).dump();
    };
    std::ranges::move(testing::Ranks(3, rank).results(), std::back_inserter(texts));
  }
  const std::vector<double> one = trained({}, 12);
  for (const std::string& text : texts) {
    ASSERT_EQ(text.front(), '[') << text;
    testing::expect_all_within(nlohmann::json::parse(text).get<std::vector<double>>(), one, 1e-9);
  }
}

/// A step of a recipe computes the same bits in a program that has this recipe alone.
void expect_same_alone(const PrecisionOptions& precision) {
  Program alone("alone");
  const Value image = alone.data("image", {kBatch, 1, 3, 3}, f32);
  const Value noise = alone.data("noise", {kBatch, kLatent}, f32);
  const auto record = [&](Program& net, Value x, Value z) {
    return record_gan(net, x, z, {.latent = kLatent, .width = kWidth});
  };
  const MinimizeOptions of_g{.name = "generator", .parameters = {"generator"}};
  minimize(record(alone, image, noise).generator, Adam{.lr = 0.05}, of_g);
  std::erase_if(alone.ir().main().outputs,
                [](const ir::Output& o) { return o.name == "discriminator_loss"; });
  Program both("both");
  const Value x = both.data("image", {kBatch, 1, 3, 3}, f32);
  const Value z = both.data("noise", {kBatch, kLatent}, f32);
  const GanLosses losses = record(both, x, z);
  minimize(losses.discriminator, SGD{.lr = 0.1},
           {.name = "discriminator", .parameters = {"discriminator"}});
  minimize(losses.generator, Adam{.lr = 0.05}, of_g);
  Executor a(alone, cpu(), {.precision = precision}), b(both, cpu(), {.precision = precision});
  set_start(a);
  set_start(b);
  const Feeds feeds = {{"image", image_of(0).cast(f32)},
                       {"noise", golden_tensor(200, {kBatchSize, kLatent}).cast(f32)}};
  for (int step = 0; step < 3; ++step) {
    const double expected = a.run(feeds)["generator_loss"].item();
    EXPECT_EQ(b.run("generator", feeds)["generator_loss"].item(), expected);
  }
  EXPECT_EQ(parameters_of(a), parameters_of(b));
  if (!a.loss_scaling()) return;
  EXPECT_EQ(a.loss_scaling()->scale, b.loss_scaling("generator")->scale);
  EXPECT_EQ(b.parameter("generator:" + std::string(kGoodSteps)).item(), 3);
  EXPECT_EQ(b.parameter("discriminator:" + std::string(kGoodSteps)).item(), 0);
}

TEST(Recipes, AreTheSameAlone) {
  expect_same_alone({});
  expect_same_alone({.amp = AmpOptions{.dtype = DType::bf16}});
  expect_same_alone({.amp = AmpOptions{.dtype = DType::f16}});
  expect_same_alone({.amp = AmpOptions{.dtype = DType::bf16, .level = AmpLevel::o2}});
}

TEST(Recipes, ResumeInTheMiddleOfACycle) {
  const auto train = [](const std::string& directory, bool resume, int64_t max_steps) {
    const MinimizeOptions averages = {.ema = {.decay = 0.9}};
    Trainer trainer(gan(averages, averages), cpu(), {.seed = 3},
                    {.directory = directory, .resume = resume});
    Reader reader(samples(12), {.batch = kBatchSize, .shuffle_seed = 1});
    trainer.fit(reader, {.recipes = kCycle, .max_steps = max_steps});
    std::map<std::string, std::vector<double>> values;
    for (const SnapshotVariable& v : trainer.executor().snapshot().variables) {
      values[v.name] = values_of(trainer.executor(), {v.name});
    }
    return values;
  };
  const TempDir whole, parts;
  const auto expected = train(whole.path(), false, 0);
  // The first checkpoint precedes the first step of the generator.
  for (const int64_t steps : {1, 4, 8}) train(parts.path(), steps > 1, steps);
  const auto resumed = train(parts.path(), true, 0);
  EXPECT_EQ(resumed, expected);
  for (const char* name :
       {"generator:update", "generator:generator.fc0.w.m", "generator:lr",
        "discriminator:discriminator.fc1.b.v", "discriminator:discriminator.fc1.b.ema"}) {
    EXPECT_TRUE(expected.contains(name)) << name;
  }
}

/// fit() validates with and saves the averages of the one recipe that keeps some, and the other
/// parameters as they are.
TEST(Recipes, KeepAveragesOneByOne) {
  const TempDir dir;
  Trainer trainer(gan({}, {.ema = {.decay = 0.9}}), cpu(), {});
  set_start(trainer.executor());
  Reader train(samples(12), {.batch = kBatchSize}), test(samples(2), {.batch = kBatchSize});
  const History history = trainer.fit(train, {.recipes = kCycle,
                                              .validation = &test,
                                              .averages = true,
                                              .save = dir.file("averaged.safetensors")});
  Trainer averaged(gan(), cpu());
  averaged.load(dir.file("averaged.safetensors"));
  for (const auto& [name, shape] : kParameters) {
    const bool has_average = name.starts_with("generator");
    const std::string from = has_average ? "generator:" + name + ".ema" : name;
    EXPECT_EQ(values_of(averaged.executor(), {name}), values_of(trainer.executor(), {from}))
        << name;
  }
  test.seek({});
  for (const auto& [name, value] : averaged.evaluate(test)) {
    const auto& seen = history.epochs.at(0).validation;
    const auto found = std::ranges::find(seen, name, &std::pair<std::string, double>::first);
    ASSERT_NE(found, seen.end()) << name;
    EXPECT_EQ(found->second, value) << name;
  }
}

TEST(Recipes, OfTheSameParameterHaveTheirOwnStates) {
  Program net("two");
  const Value x = net.data("x", {kBatch, 3}, f64);
  const Value w = net.parameter("w", {3, 1}, Init::constant(1), {.dtype = f64});
  const Value y = matmul(x, w);
  const Value first = mean(square(y)), second = mean(square(y - 1));
  net.output("first", first);
  net.output("second", second);
  minimize(first, Adam{.lr = 0.1}, {.name = "a"});
  minimize(second, Adam{.lr = 0.1}, {.name = "b"});
  Executor exe(net, cpu());
  exe.run("a", {{"x", golden_tensor(1, {4, 3})}});
  EXPECT_NE(exe.parameter("a:w.m").at(0), 0);
  EXPECT_EQ(exe.parameter("b:w.m").at(0), 0);
}

TEST(Recipes, ComputeTheOutputsOfTheirLoss) {
  Executor exe(gan(), cpu());
  const Feeds noise = {{"noise", golden_tensor(200, {kBatchSize, kLatent})}};
  const OutputViews outputs = exe.run("generator", noise);  // needs no image
  EXPECT_EQ(outputs.size(), 2U);
  EXPECT_TRUE(outputs.contains("image"));
  expect_user_error([&] { (void)outputs["discriminator_loss"]; },
                    "output 'discriminator_loss' is not computed by a step of recipe 'generator'");
  expect_user_error([&] { exe.run("discriminator", noise); }, "'image'");
}

/// A layer with batch statistics updates its running statistics in the steps whose loss reads it,
/// whether its parameters train or not.
TEST(Recipes, UpdateTheRunningStatisticsThatTheirLossReads) {
  Program net("stats");
  const Value x = net.data("x", {kBatch, 3, 2, 2}, f64), z = net.data("z", {kBatch, 3}, f64);
  const auto layer = [](Value v, const char* name) { return batch_norm(v, {.name = name}); };
  const Value shared = layer(x, "shared");
  const Value first = mean(square(shared)), second = mean(square(layer(shared, "own"))) + mean(z);
  net.output("first", first);
  minimize(first, SGD{.lr = 0.1}, {.name = "a"});
  minimize(second, SGD{.lr = 0.1}, {.name = "b", .parameters = {"own"}});
  Executor exe(net, cpu());
  const Batch batch{4, {{"x", golden_tensor(1, {4, 3, 2, 2})}, {"z", golden_tensor(2, {4, 3})}}, 0};
  const auto mean_of = [&](const char* name) {
    return exe.parameter(std::string(name) + ".running_mean").at(0);
  };
  exe.run("a", batch);
  const double after_a = mean_of("shared");
  EXPECT_NE(after_a, 0);
  EXPECT_EQ(mean_of("own"), 0);
  const Tensor scale = exe.parameter("shared.gamma");
  exe.run("b", batch);
  EXPECT_NE(mean_of("shared"), after_a);
  EXPECT_EQ(exe.parameter("shared.gamma").at(0), scale.at(0)) << "a constant of recipe b";
}

/// The other recipes run, and their checkpoints fit.
TEST(Recipes, OfFrozenParametersHaveNoStep) {
  Program net = gan({.ema = {.decay = 0.9}});
  set_parameter_groups(net, {{.pattern = "discriminator", .trainable = false}});
  const Tensor noise = golden_tensor(200, {kBatchSize, kLatent});
  Executor exe(net, cpu(), {.batch = kBatchSize}), resumed(net, cpu(), {.batch = kBatchSize});
  exe.run("generator", {{"image", image_of(0)}, {"noise", noise}});
  expect_user_error(
      [&] {
        exe.run("discriminator", {{"image", image_of(0)}, {"noise", noise}});
      },
      "recipe 'discriminator': the loss does not depend on any trainable parameter");
  resumed.restore(exe.snapshot());
  const std::vector<double> trained = parameters_of(exe);
  EXPECT_EQ(parameters_of(resumed), trained);
  exe.use_averages(true);
  EXPECT_EQ(parameters_of(exe), trained) << "there are none";
}

/// The penalties of a recipe belong to no output: the outputs are the losses as the user has them.
TEST(Recipes, KnowTheirLossesWithoutPenalties) {
  Program net("penalties");
  const Value x = net.data("x", {kBatch, 3}, f64);
  const Value w = net.parameter("w", {3, 1}, Init::constant(1), {.dtype = f64, .l1 = 0.1, .l2 = 2});
  const Value y = matmul(x, w);
  const Value first = mean(square(y)), second = mean(abs(y));
  net.output("first", first);
  net.output("second", second);
  minimize(first, SGD{.lr = 0.1}, {.name = "a"});
  minimize(second, SGD{.lr = 0.1}, {.name = "b"});
  const RecipeCycle cycle(net, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(cycle.recipes()[0].loss, "first");
  EXPECT_EQ(cycle.recipes()[1].loss, "second");
  Executor exe(net, cpu());
  const OutputViews outputs = exe.run("b", {{"x", golden_tensor(1, {4, 3})}});
  EXPECT_TRUE(outputs.contains("second"));
  EXPECT_FALSE(outputs.contains("first"));
}

TEST(Recipes, RejectWhatNamesNone) {
  const Feeds feeds = {{"noise", golden_tensor(200, {kBatchSize, kLatent})}};
  Executor exe(gan(), cpu());
  expect_user_error([&] { exe.run(feeds); }, "the recipes 'discriminator', 'generator'");
  expect_user_error([&] { exe.run("critic", feeds); },
                    "no recipe 'critic'; there are 'discriminator', 'generator'");
  Program one("one");
  const Value x = one.data("x", {kBatch, 2}, f32);
  const Value loss = mean(square(linear(x, {.units = 1})));
  one.output("loss", loss);
  expect_user_error([&] { minimize(loss, SGD{}, {.parameters = {"fc7"}}); },
                    "pattern 'fc7' matches no parameter that the loss depends on");
  minimize(loss, SGD{}, {.name = "a"});
  expect_user_error([&] { minimize(loss, SGD{}, {.name = "a"}); }, "already has a recipe 'a'");
  expect_user_error(
      [&] {
        Program two("two");
        const Value other = mean(square(linear(two.data("x", {kBatch, 2}, f32), {.units = 1})));
        minimize(other, SGD{}, {.name = "a"});
        minimize(other, SGD{});
      },
      "has several recipes, and this one has no name");
  Program colon("colon");
  const Value c = mean(square(linear(colon.data("x", {kBatch, 2}, f32), {.units = 1})));
  expect_user_error([&] { minimize(c, SGD{}, {.name = "a:2"}); },
                    "the name 'a:2' of a recipe may hold only letters, digits, '_', '-' and '.'");
  Program unnamed("unnamed");
  const Value u = mean(square(linear(unnamed.data("x", {kBatch, 2}, f32), {.units = 1})));
  unnamed.output("loss", u);
  minimize(u, SGD{});
  Executor trains(unnamed, cpu());
  expect_user_error(
      [&] {
        trains.run("a", {{"x", Tensor(f32, {2, 2})}});
      },
      "no recipe 'a'; its only recipe has no name");
  Program none("none");
  none.output("y", neg(none.data("x", {kBatch}, f32)));
  Executor evaluates(none, cpu());
  expect_user_error([&] { evaluates.run("a", {{"x", Tensor(f32, {2})}}); }, "no recipe 'a'");
}

TEST(Recipes, RejectACycleThatIsNone) {
  Trainer trainer(gan(), cpu());
  Reader reader(samples(2), {.batch = kBatchSize});
  const auto fit = [&](const std::vector<RecipeSteps>& cycle) {
    return [&, cycle] { trainer.fit(reader, {.recipes = cycle}); };
  };
  expect_user_error(fit({}), "program 'gan' has the recipes discriminator, generator");
  expect_user_error(fit({{"critic", 1}}), "no recipe 'critic'");
  expect_user_error(fit({{"generator", 0}}), "recipe 'generator' has 0 steps");
  expect_user_error(fit({{"generator", 1}, {"generator", 1}}), "'generator' is twice");
}

}  // namespace
}  // namespace fluid::recipes_test
