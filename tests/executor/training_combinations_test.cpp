// Random combinations of optimizers, schedules, clips, averages, penalties, groups of parameters,
// adapters, layers and metrics, each trained in several ways. In f64, ranks, micro-batches and
// shards of the optimizer state change nothing but rounding errors; in every precision,
// training goes on from a snapshot with the same bits.

#include <gtest/gtest.h>

#include <random>

#include "frontend/fluid.h"
#include "ir/print.h"
#include "ops/optim/optimizer.h"
#include "tests/support/all_within.h"
#include "tests/support/full_run.h"
#include "tests/support/parallel_training.h"

namespace fluid::training_combinations_test {
namespace {

constexpr int64_t kSteps = 5;  // two epochs of testing::kSamples, without the last step

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[random_() % choices.size()];
  }
  bool one_in(size_t n) { return random_() % n == 0; }

 private:
  std::mt19937_64 random_;
};

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

Schedule schedule(Draw& draw) {
  return draw.one_of<Schedule>({{},
                                StepDecay{.every = 2, .warmup = 2},
                                Cosine{.steps = 6},
                                OneCycle{.steps = 6},
                                LinearDecay{.steps = 5, .warmup = 1, .warmup_start = 0.5},
                                PiecewiseConstant{.boundaries = {2}, .values = {0.01, 0.03}}});
}

MinimizeOptions options(Draw& draw) {
  MinimizeOptions o;
  o.schedule = schedule(draw);
  o.clip = draw.one_of<Clip>({{}, {.value = 0.05}, {.norm = 0.1}, {.global_norm = 0.2}});
  if (draw.one_in(3)) {
    o.ema.decay = 0.9;
  } else if (draw.one_in(2)) {
    o.swa = {.start = 2, .every = 2};
  }
  if (draw.one_in(3)) o.lookahead = {.every = 2};
  if (draw.one_in(3)) {
    o.groups.push_back({.pattern = "stem", .trainable = draw.one_in(2), .lr_scale = 0.5});
  }
  if (draw.one_in(3)) o.groups.push_back({.pattern = "head", .lr_scale = 2, .decay_scale = 0});
  return o;
}

/// With the feeds of testing::parallel_samples().
Program program(Draw& draw) {
  Program net("combination");
  const Value x = net.data("x", {kBatch, 6}, f32), label = net.data("label", {kBatch}, i64);
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
  const Value scores = linear(stem + branch, {.units = 3, .name = "head"});
  const Value loss = mean(softmax_cross_entropy(scores, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(scores, label));
  net.output("scores", scores);
  const MinimizeOptions rules = options(draw);
  if (draw.one_in(4)) lora(net, "branch", {.rank = 2});
  minimize(loss, optimizer(draw), rules);
  return net;
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
  const Program net = program(draw);
  const int ranks = draw.one_of<int>({1, 2, 3});
  ExecutorOptions options = way(draw, ranks);
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

/// 4 of 200 combinations; in a full run, all.
TEST(TrainingCombinations, AreTheSameInEveryWay) {
  const uint64_t count = testing::is_full_run() ? 200 : 4;
  for (uint64_t seed = 0; seed < count; ++seed) {
    check(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fluid::training_combinations_test
