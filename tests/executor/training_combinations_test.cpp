// Random combinations of models, recipes, optimizers, schedules, clips, averages, penalties, groups
// of parameters, adapters and metrics, each trained in several ways. In f64, ranks, micro-batches
// and shards of the optimizer state change nothing but rounding errors; in every precision,
// training goes on from a snapshot with the same bits.

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/fluid.h"
#include "ir/print.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/schedule.h"
#include "ops/table.h"
#include "tests/support/all_within.h"
#include "tests/support/draw.h"
#include "tests/support/parallel_training.h"

namespace fluid::training_combinations_test {
namespace {

using testing::Draw;

constexpr int64_t kSteps = 5;  // two epochs of testing::kSamples, without the last step

Attrs optimizer(Draw& draw) {
  const std::string name = draw.one_of(optimizer_names());
  Attrs recipe = {{"optimizer", name}, {"lr", 0.02}};
  for (const AttrDef& a : *find_optimizer(name)->attrs) {
    const bool is_flag = std::holds_alternative<bool>(a.fallback);
    if (is_flag && draw.one_in(2)) recipe.set(a.name, true);
    if (a.name == "weight_decay" && draw.one_in(2)) recipe.set(a.name, 0.05);
    if (a.name == "momentum" && name != "muon") recipe.set(a.name, 0.5);  // nesterov needs it
  }
  return recipe;
}

/// One of each schedule.
const std::vector<Schedule>& schedules() {
  static const std::vector<Schedule> all = {
      ConstantRate{.warmup = 2},
      StepDecay{.every = 2, .warmup = 2},
      MultistepDecay{.milestones = {2, 3}, .factor = 0.5},
      PiecewiseConstant{.boundaries = {2}, .values = {0.01, 0.03}},
      ExponentialDecay{.factor = 0.8},
      InverseTimeDecay{.decay = 0.5},
      PolynomialDecay{.steps = 6, .power = 2},
      LinearDecay{.steps = 5, .warmup = 1, .warmup_start = 0.5},
      Cosine{.steps = 6},
      CosineRestarts{.period = 2},
      OneCycle{.steps = 6},
      Noam{.d_model = 16, .warmup = 3},
      Plateau{.factor = 0.5, .patience = 1, .cooldown = 1},
      Manual{.warmup = 1}};
  return all;
}

using RecordMetric = std::function<Value(Value scores, Value label)>;

/// Each metric of a classifier of three classes, by the name of its op, with its options.
const std::vector<std::pair<std::string, RecordMetric>>& metrics() {
  const auto is_one = [](Value label) { return cast(equal(label, scalar_like(label, 1)), i64); };
  const auto score_of_one = [](Value scores) {
    return reshape(slice(scores, {.starts = {1}, .stops = {2}, .axes = {1}}), {kBatch});
  };
  const auto target = [](Value scores, Value label) {
    return one_hot(label, {.to = scores.type()});
  };
  static const std::vector<std::pair<std::string, RecordMetric>> all = {
      {"accuracy", [](Value x, Value y) { return accuracy(x, y); }},
      {"top_k_accuracy", [](Value x, Value y) { return top_k_accuracy(x, y, {.k = 2}); }},
      {"precision", [](Value x, Value y) { return precision(x, y, {.average = "micro"}); }},
      {"recall", [](Value x, Value y) { return recall(x, y, {.average = "weighted"}); }},
      {"f1_score", [](Value x, Value y) { return f1_score(x, y); }},
      {"f1_score",
       [=](Value x, Value y) {
         return f1_score(score_of_one(x), is_one(y), {.average = "binary", .threshold = 0.1});
       }},
      {"roc_auc", [](Value x, Value y) { return roc_auc(x, y, {.classes = 3}); }},
      {"roc_auc", [=](Value x, Value y) { return roc_auc(score_of_one(x), is_one(y)); }},
      {"perplexity", [](Value x, Value y) { return perplexity(x, y); }},
      {"perplexity", [](Value x, Value y) { return perplexity(x, y, {.ignore_index = {2}}); }},
      {"mean_squared_error", [=](Value x, Value y) { return mean_squared_error(x, target(x, y)); }},
      {"mean_absolute_error",
       [=](Value x, Value y) { return mean_absolute_error(x, target(x, y)); }},
      {"root_mean_squared_error",
       [=](Value x, Value y) { return root_mean_squared_error(x, target(x, y)); }},
      {"r2_score", [=](Value x, Value y) { return r2_score(x, target(x, y)); }},
      {"metric",
       [=](Value x, Value y) { return metric(sum(x * target(x, y)), sum(target(x, y))); }}};
  return all;
}

void add_metrics(Draw& draw, Program& net, Value scores, Value label) {
  for (const std::string name : {"first", "second"}) {
    net.output(name, draw.one_of(metrics()).second(scores, label));
  }
}

MinimizeOptions options(Draw& draw) {
  MinimizeOptions o;
  if (!draw.one_in(8)) o.schedule = draw.one_of(schedules());
  o.clip = draw.one_of<Clip>({{}, {.value = 0.05}, {.norm = 0.1}, {.global_norm = 0.2}});
  if (draw.one_in(3)) {
    o.ema.decay = 0.9;
  } else if (draw.one_in(2)) {
    o.swa = {.start = 2, .every = 2};
  }
  if (draw.one_in(3)) o.lookahead = {.every = 2};
  return o;
}

std::vector<ParameterGroup> groups(Draw& draw) {
  std::vector<ParameterGroup> groups;
  if (draw.one_in(3)) {
    groups.push_back({.pattern = "stem", .trainable = draw.one_in(2), .lr_scale = 0.5});
  }
  if (draw.one_in(3)) groups.push_back({.pattern = "head", .lr_scale = 2, .decay_scale = 0});
  return groups;
}

// The models: features [N, 8] of x [N, 6]. Each has a layer "stem" and a linear layer "branch".
// No parameter has a gradient of rounding errors alone, such as that of a bias before a
// normalisation: Adam would make steps of it.

Value residual_mlp(Draw& draw, Value x) {
  const auto penalty = [&] { return draw.one_in(3) ? 0.01 : 0.0; };
  const double l1 = penalty(), l2 = penalty();
  const Value stem = linear(x, {.units = 8,
                                .act = draw.one_of<Act>({Act::tanh, Act::relu}),
                                .l1 = l1,
                                .l2 = l2,
                                .max_norm = draw.one_in(3) ? 0.5 : 0.0,
                                .name = "stem"});
  Value branch = linear(layer_norm(stem), {.units = 8, .act = Act::tanh, .name = "branch"});
  if (draw.one_in(2)) branch = dropout(branch, {.p = 0.25});
  if (draw.one_in(2)) branch = stochastic_depth(branch, {.p = 0.25});
  return stem + branch;
}

Value convolutional(Draw& draw, Value x) {
  Value h = conv2d(reshape(x, {kBatch, 1, 2, 3}),
                   {.filters = 4, .kernel = 3, .padding = 1, .bias = false, .name = "stem"});
  h = flatten(batch_norm(h, {.act = draw.one_of<Act>({Act::tanh, Act::relu})}));
  if (draw.one_in(2)) h = dropout(h, {.p = 0.25});
  return linear(h, {.units = 8, .act = Act::tanh, .name = "branch"});
}

Value recurrent(Draw& draw, Value x) {
  const Value steps = reshape(x, {kBatch, 3, 2});
  const Recurrent layer = {.units = 5,
                           .layers = draw.one_in(2) ? 2 : 1,
                           .bidirectional = draw.one_in(2),
                           .dropout = draw.one_in(2) ? 0.25 : 0,
                           .name = "stem"};
  const RecurrentResult h = draw.one_in(2) ? lstm(steps, layer) : gru(steps, layer);
  return linear(flatten(h.output), {.units = 8, .act = Act::tanh, .name = "branch"});
}

Value transformer(Draw& draw, Value x, Value label) {
  const auto rate = [&] { return draw.one_in(2) ? 0.25 : 0.0; };
  const double after = rate(), within = rate();
  const Value token = embedding(label, {.rows = 3, .units = 4, .name = "token"});
  Value h = linear(reshape(x, {kBatch, 3, 2}), {.units = 4, .name = "stem"});
  h = positional_encoding(h) + reshape(token, {kBatch, 1, 4});
  h = transformer_block(
      h, {.heads = 2, .hidden = 8, .dropout = after, .attention_dropout = within, .bias = false});
  return linear(flatten(h), {.units = 8, .act = Act::tanh, .name = "branch"});
}

struct Combination {
  Program net;
  bool has_batch_statistics = false;
};

/// With the feeds of testing::parallel_samples(), and one or two recipes.
Combination combination(Draw& draw, uint64_t model) {
  Combination made{.net = Program("combination"), .has_batch_statistics = model == 1};
  Program& net = made.net;
  const Value x = net.data("x", {kBatch, 6}, f32), label = net.data("label", {kBatch}, i64);
  const Value features = model == 0   ? residual_mlp(draw, x)
                         : model == 1 ? convolutional(draw, x)
                         : model == 2 ? recurrent(draw, x)
                                      : transformer(draw, x, label);
  const Value scores = linear(features, {.units = 3, .name = "head"});
  const Value loss = mean(softmax_cross_entropy(scores, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(scores, label));
  net.output("scores", scores);
  add_metrics(draw, net, scores, label);
  MinimizeOptions rules = options(draw);
  if (draw.one_in(3)) {
    const Value distance = mean(square(linear(features, {.units = 2, .name = "other"}) - 1.0));
    net.output("distance", distance);
    rules.groups = groups(draw);
    rules.name = "classes";
    if (draw.one_in(2)) rules.parameters = {"head", "stem", "branch"};
    minimize(loss, optimizer(draw), rules);
    MinimizeOptions other = options(draw);
    other.name = "distances";
    if (draw.one_in(2)) other.parameters = {"other", "stem"};
    minimize(distance, optimizer(draw), other);
    return made;
  }
  rules.groups = groups(draw);
  if (draw.one_in(4)) lora(net, "branch", {.rank = 2});
  minimize(loss, optimizer(draw), rules);
  return made;
}

ExecutorOptions way(Draw& draw, int ranks) {
  ExecutorOptions o;
  o.micro_batches = draw.one_of<int64_t>({1, 2});
  o.distributed.zero = ranks > 1 && draw.one_in(2) ? 1 : 0;
  return o;
}

testing::Seen trained(int ranks, const Program& net, const ExecutorOptions& options,
                      std::optional<int64_t> resume_at = {}) {
  if (ranks == 1) {
    return testing::trained(net, options, kSteps, testing::kSamples, cpu(), resume_at);
  }
  return testing::trained_by(ranks, net, options, kSteps, testing::kSamples, nullptr, resume_at);
}

void set_mixed_precision(Draw& draw, ExecutorOptions& options) {
  options.precision = {
      .amp = AmpOptions{.dtype = draw.one_of<DType>({f16, bf16}),
                        .level = draw.one_of<AmpLevel>({AmpLevel::o1, AmpLevel::o2})}};
}

void check(uint64_t seed) {
  Draw draw(seed);
  const auto [net, has_batch_statistics] = combination(draw, seed % 4);
  const int ranks = draw.one_of<int>({1, 2, 3});
  ExecutorOptions options = way(draw, ranks);
  if (has_batch_statistics) options.micro_batches = 1;  // each normalises its own samples
  options.distributed.sync_bn = has_batch_statistics && ranks > 1;
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks, " +
               std::to_string(options.micro_batches) + " micro-batches, ZeRO " +
               std::to_string(options.distributed.zero) + "\n" + ir::print(net.ir()));
  options.precision.dtype = f64;
  const testing::Seen one = trained(1, net, {.precision = {.dtype = f64}});
  const testing::Seen found = trained(ranks, net, options);
  testing::expect_all_within(found.figures, one.figures, 1e-9);
  testing::expect_all_within(found.parameters, one.parameters, 1e-9);
  if (draw.one_in(2)) set_mixed_precision(draw, options);
  const testing::Seen whole = options.precision.amp ? trained(ranks, net, options) : found;
  EXPECT_EQ(trained(ranks, net, options, 3), whole) << "resumed";
}

TEST(CombinationSchedules, AreAll) {
  std::set<std::string> names;
  for (const Schedule& s : schedules()) names.insert(s.attrs().get<std::string>("schedule"));
  const std::vector<std::string> all = schedule_names();
  EXPECT_EQ(names, std::set<std::string>(all.begin(), all.end()));
}

TEST(CombinationMetrics, AreAll) {
  std::set<std::string> names, all;
  for (const auto& [name, record] : metrics()) names.insert(name);
  for (const OpDef& def : op_table()) {
    if (std::holds_alternative<Metric>(*def.effects)) all.insert(*def.name);
  }
  EXPECT_EQ(names, all);
}

class TrainingCombinations : public ::testing::TestWithParam<uint64_t> {};

TEST_P(TrainingCombinations, AreTheSameInEveryWay) { check(GetParam()); }

/// One combination of each model; in a full run, 200 combinations.
INSTANTIATE_TEST_SUITE_P(Seeds, TrainingCombinations, ::testing::Range(uint64_t{0}, uint64_t{4}));
/// LAMB on three ranks, of which one has no sample in a step, and so another program.
INSTANTIATE_TEST_SUITE_P(RanksOfUnequalPrograms, TrainingCombinations, ::testing::Values(93));
INSTANTIATE_TEST_SUITE_P(Long, TrainingCombinations, ::testing::Range(uint64_t{4}, uint64_t{200}));

}  // namespace
}  // namespace fluid::training_combinations_test
