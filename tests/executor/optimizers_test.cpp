// Every optimizer against 30 updates by PyTorch or by its paper's formula, which
// tests/golden/optimizers.py recorded, and in the ways to train.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "frontend/fluid.h"
#include "ops/arguments.h"
#include "ops/optim/optimizer.h"
#include "passes/rewrite.h"
#include "tests/support/errors.h"
#include "tests/support/full_run.h"
#include "tests/support/golden_training.h"
#include "tests/support/parallel_training.h"

namespace fluid::optimizers_test {
namespace {

using Json = nlohmann::json;

const Json& golden() {
  static const Json json = testing::golden_json("optimizers.json");
  return json;
}

/// The recipe of an optimizer with its default settings.
Attrs default_recipe(const std::string& optimizer) {
  return {{"lr", find_optimizer(optimizer)->optimizer->lr}, {"optimizer", optimizer}};
}

Attrs recipe_of_case(const Json& c) {
  Attrs recipe = default_recipe(c.at("optimizer"));
  if (c.contains("lr")) recipe.set("lr", c.at("lr").get<double>());
  for (const auto& [name, value] : c.at("settings").items()) {
    if (value.is_boolean()) {
      recipe.set(name, value.get<bool>());
    } else if (value.is_string()) {
      recipe.set(name, value.get<std::string>());
    } else if (value.is_number_integer()) {
      recipe.set(name, value.get<int64_t>());
    } else {
      recipe.set(name, value.get<double>());
    }
  }
  return recipe;
}

/// Linear regression, as in the script.
Program regression(const Attrs& recipe) {
  Program net("regression");
  const Value x = net.data("x", {kBatch, 3}, f64), y = net.data("y", {kBatch, 2}, f64);
  const Value loss = mean(square(linear(x, {.units = 2}) - y));
  net.output("loss", loss);
  minimize(loss, recipe);
  return net;
}

void expect_golden(const Json& c, const ExecutorOptions& options) {
  SCOPED_TRACE(c.at("optimizer").get<std::string>() + " " + c.at("settings").dump());
  Executor exe(regression(recipe_of_case(c)), cpu(), options);
  testing::set_golden_start(exe, {"fc0.w", "fc0.b"});
  testing::expect_golden_steps(exe, {"fc0.w", "fc0.b"}, c.at("params"));
}

TEST(Optimizers, AreThoseOfPyTorchAndOfPapers) {
  for (const Json& c : golden().at("cases")) expect_golden(c, {});
}

/// A filter of rank 4 for adafactor, a square and a wide matrix for muon, and a start at 0 for lars
/// and lamb, whose trust ratio is then 1.
TEST(Optimizers, UpdateWeightsOfOtherShapes) {
  for (const Json& c : golden().at("shapes")) {
    SCOPED_TRACE(c.dump());
    Shape shape;
    for (const int64_t extent : c.at("shape")) shape.emplace_back(extent);
    Program net("shaped");
    const Value w = net.parameter("w", shape, Init::zeros(), {.dtype = f64});
    const int64_t features = w.shape().numel().size / 2;
    const Value x = net.data("x", {kBatch, features}, f64), y = net.data("y", {kBatch, 2}, f64);
    const Value loss = mean(square(matmul(x, reshape(w, Shape{features, 2})) - y));
    net.output("loss", loss);
    minimize(loss, recipe_of_case(c));
    Executor exe(net, cpu(), {});
    if (c.at("start") == 1) testing::set_golden_start(exe, {"w"});
    testing::expect_golden_steps(exe, {"w"}, c.at("params"), features);
  }
}

/// The first case of each optimizer; in a full run, all.
TEST(Optimizers, AreTheSameInMicroBatches) {
  std::set<std::string> seen;
  for (const Json& c : golden().at("cases")) {
    const bool is_first = seen.insert(c.at("optimizer")).second;
    if (is_first || testing::is_full_run()) expect_golden(c, {.micro_batches = 2});
  }
}

TEST(Optimizers, HaveGoldensOfEverySetting) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Json& c : golden().at("cases")) {
    for (const auto& [name, value] : c.at("settings").items()) {
      seen.insert({c.at("optimizer"), name});
    }
  }
  for (const std::string& optimizer : optimizer_names()) {
    for (const AttrDef& a : *find_optimizer(optimizer)->attrs) {
      EXPECT_TRUE(seen.contains({optimizer, a.name})) << optimizer << " " << a.name;
    }
  }
}

/// `recipe`: the attributes of a struct with its default settings.
void expect_defaults(const std::string& name, const Attrs& recipe) {
  SCOPED_TRACE(name);
  const OpDef& def = *find_optimizer(name);
  EXPECT_EQ(recipe.get<std::string>("optimizer"), name);
  EXPECT_EQ(recipe.get<double>("lr"), def.optimizer->lr);
  const Attrs settings = optimizer_settings(recipe);
  EXPECT_EQ(settings.size(), def.attrs->size());
  for (const AttrDef& a : *def.attrs) EXPECT_EQ(*settings.find(a.name), a.fallback) << a.name;
}

TEST(Optimizers, HaveCppTypes) {
  expect_defaults("sgd", recipe_of(SGD()));
  expect_defaults("momentum", recipe_of(Momentum()));
  expect_defaults("adagrad", recipe_of(Adagrad()));
  expect_defaults("adadelta", recipe_of(Adadelta()));
  expect_defaults("rmsprop", recipe_of(RMSprop()));
  expect_defaults("adam", recipe_of(Adam()));
  expect_defaults("adamw", recipe_of(AdamW()));
  expect_defaults("adamax", recipe_of(Adamax()));
  expect_defaults("nadam", recipe_of(NAdam()));
  expect_defaults("radam", recipe_of(RAdam()));
  expect_defaults("lion", recipe_of(Lion()));
  expect_defaults("lamb", recipe_of(LAMB()));
  expect_defaults("lars", recipe_of(LARS()));
  expect_defaults("adafactor", recipe_of(Adafactor()));
  expect_defaults("muon", recipe_of(Muon()));
  Program net("typed");
  const Value w = net.parameter("w", {2}, Init::constant(1));
  minimize(sum(w), NAdam{.beta1 = 0.5, .decoupled_weight_decay = true});
  const Attrs& recipe = find_directive(net.ir().main())->attrs;
  EXPECT_EQ(recipe.get<std::string>("optimizer"), "nadam");
  EXPECT_EQ(recipe.get<double>("beta1"), 0.5);
  EXPECT_EQ(recipe.get<bool>("decoupled_weight_decay"), true);
}

/// All optional states.
Attrs large_recipe(const std::string& optimizer) {
  Attrs recipe = default_recipe(optimizer);
  for (const OptimizerState& s : find_optimizer(optimizer)->optimizer->states) {
    if (s.setting.empty()) continue;
    const bool is_flag = s.setting != "momentum";
    recipe.set(s.setting, is_flag ? Attr(true) : Attr(0.5));
  }
  return recipe;
}

Program parallel_program_with(const std::string& optimizer) {
  Program net = testing::parallel_program();
  Attrs& attrs = find_directive(net.ir().main())->attrs;
  for (const auto& [name, value] : optimizer_settings(attrs)) attrs.erase(name);
  for (const auto& [name, value] : large_recipe(optimizer)) attrs.set(name, value);
  return net;
}

/// Returns the optimizers that read more of a parameter than their shard, and nadam; all optimizers
/// in a full run.
std::vector<std::string> optimizers_to_train() {
  if (testing::is_full_run()) return optimizer_names();
  return {"lamb", "lars", "muon", "adafactor", "nadam"};
}

TEST(Optimizers, ShardedStateGivesTheParametersOfOneProcess) {
  for (const std::string& optimizer : optimizers_to_train()) {
    SCOPED_TRACE(optimizer);
    const Program net = parallel_program_with(optimizer);
    ExecutorOptions options{.precision = {.dtype = f64}};
    const std::vector<double> one = testing::trained(net, options, 2).parameters;
    options.distributed.zero = 1;
    const std::vector<double> three = testing::trained_by(3, net, options, 2).parameters;
    testing::expect_near(three, one, 1e-9);
  }
}

TEST(Optimizers, TrainInMixedPrecision) {
  for (const std::string& optimizer : optimizers_to_train()) {
    SCOPED_TRACE(optimizer);
    const Program net = parallel_program_with(optimizer);
    const std::vector<double> exact = testing::trained(net, {}, 2).parameters;
    const ExecutorOptions half{
        .precision = {.amp = AmpOptions{.dtype = bf16, .level = AmpLevel::o2}}};
    const std::vector<double> found = testing::trained(net, half, 2).parameters;
    ASSERT_EQ(found.size(), exact.size());
    double sum = 0, differences = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      sum += std::abs(exact[i]);
      differences += std::abs(exact[i] - found[i]);
    }
    EXPECT_LT(differences, 0.1 * sum);
  }
}

/// A table whose gradient is rows.
Value lookup_loss(Program& net, bool sparse) {
  const Value index = net.data("index", {kBatch}, i64);
  const Value table = net.parameter("table", {5, 2}, Init::constant(0.5), {.sparse = sparse});
  const Value loss = mean(square(embedding(table, index)));
  net.output("loss", loss);
  return loss;
}

TEST(Optimizers, UpdateTheRowsOfASparseTableOrRejectIt) {
  const Feeds feeds = {{"index", Tensor::of<int64_t>({3}, std::vector<int64_t>{4, 0, 4})}};
  for (const std::string& optimizer : optimizer_names()) {
    SCOPED_TRACE(optimizer);
    std::vector<Tensor> tables;
    for (const bool sparse : {false, true}) {
      Program net("lookup");
      minimize(lookup_loss(net, sparse), large_recipe(optimizer));
      Executor exe(net, cpu());
      if (sparse && reads_whole_parameters(*find_optimizer(optimizer))) {
        expect_user_error([&] { exe.run(feeds); },
                          optimizer + " needs whole parameters, but 'table' is sparse");
        continue;
      }
      exe.run(feeds);
      tables.push_back(exe.parameter("table").copy());
    }
    for (const int64_t row : {0, 4}) {  // the first update of the rows that the step reads
      for (int64_t i = 2 * row; tables.size() == 2 && i < 2 * row + 2; ++i) {
        EXPECT_NEAR(tables[0].at(i), tables[1].at(i), 1e-6) << i;
      }
    }
  }
}

TEST(Optimizers, ASkippedStepChangesNoState) {
  for (const std::string& optimizer : optimizer_names()) {
    SCOPED_TRACE(optimizer);
    Program net("skip");
    const Value x = net.data("x", {kBatch, 2}, f32);
    const Value loss = mean(square(linear(x, {.units = 2})));
    net.output("loss", loss);
    minimize(loss, large_recipe(optimizer));
    Executor exe(net, cpu(), {.debug = {.check_finite = true}});
    const auto run = [&](float value) {
      exe.run(Feeds{{"x", Tensor::of<float>({1, 2}, std::vector<float>{value, 1})}});
    };
    run(2);
    const Snapshot before = exe.snapshot();
    std::vector<Tensor> kept;
    for (const SnapshotVariable& v : before.variables) kept.push_back(v.value.copy());
    run(INFINITY);
    const Snapshot after = exe.snapshot();
    for (size_t i = 0; i < kept.size(); ++i) {
      const SnapshotVariable& v = after.variables[i];
      for (int64_t k = 0; is_float(v.value.dtype()) && k < v.value.numel(); ++k) {
        EXPECT_EQ(v.value.at(k), kept[i].at(k)) << v.name;
      }
    }
  }
}

}  // namespace
}  // namespace fluid::optimizers_test
