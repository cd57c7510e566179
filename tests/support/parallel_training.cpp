#include "tests/support/parallel_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "executor/trainer/running_means.h"
#include "frontend/layers.h"
#include "ops/operators.h"
#include "ops/optim/plateau.h"
#include "ops/optim/recipes.h"
#include "passes/metrics.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"
#include "tests/support/processes.h"

namespace fluid::testing {
namespace {

/// A classifier of `h`, its outputs and how it is trained.
void classify(Program& net, Value h, const MinimizeOptions& rules) {
  const Value label = net.data("label", {kBatch}, i64);
  const Value scores = linear(h, {.units = 3});
  const Value loss = mean(softmax_cross_entropy(scores, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(scores, label));
  net.output("scores", scores);
  minimize(loss, Adam{.lr = 0.01}, rules);
}

void append_parameters(Executor& exe, std::vector<double>& to) {
  for (const std::string& name : exe.parameters()) {
    const Tensor t = exe.parameter(name);
    for (int64_t i = 0; i < t.numel(); ++i) to.push_back(t.at(i));
  }
}

/// Appends the step's statistics to `to`: those of the loss and the accuracy, or, in a program of
/// several recipes, those of each scalar output that the step computes.
void append_figures(const OutputViews& outputs, bool has_one_recipe, std::vector<double>& to) {
  const auto append = [&](const OutputView& o) {
    if (!o.metric) return to.push_back(o.value.item());
    const std::span<const double> counts = o.statistics.as<double>();
    to.insert(to.end(), counts.begin(), counts.end());
  };
  if (!has_one_recipe) {
    return outputs.for_each_scalar([&](const OutputView& o) {
      const bool holds_rows = o.metric && o.metric->results[0].type.shape.has_batch();
      if (!holds_rows) append(o);  // the rows are of this rank alone
    });
  }
  append(outputs.find("loss"));
  append(outputs.find("accuracy"));
}

/// Whether the program has a metric besides that of classify().
bool has_other_metrics(const Program& net) {
  return std::ranges::any_of(net.ir().main().outputs, [](const ir::Output& o) {
    return is_metric(o.value) && o.name != "accuracy";
  });
}

/// Adjusts the schedules that the host drives after step `step`, as if no metric got better.
void adjust_rate(Executor& exe, const ir::Op& train, int64_t step) {
  const std::string recipe = recipe_name(train);
  if (exe.uses_plateau_schedule(recipe)) exe.reduce_on_plateau(1, recipe);
  if (train.attrs.get_or("schedule", std::string()) != kManualSchedule) return;
  exe.set_learning_rate(train.attrs.get<double>("lr") / static_cast<double>(step + 2), recipe);
}

/// A snapshot that outlives its executor.
Snapshot with_copies(Snapshot snapshot) {
  for (SnapshotVariable& v : snapshot.variables) v.value = v.value.copy();
  return snapshot;
}

}  // namespace

Program parallel_program(const MinimizeOptions& rules) {
  Program net("parallel");
  const Value x = net.data("x", {kBatch, 6}, f32);
  const Value h = conv2d(reshape(x, {kBatch, 1, 2, 3}),
                         {.filters = 2, .kernel = 3, .padding = 1, .act = Act::tanh});
  classify(net, dropout(linear(flatten(h), {.units = 8, .act = Act::tanh}), {.p = 0.25}), rules);
  return net;
}

Program normalising_program(double offset, const MinimizeOptions& rules, double p) {
  Program net("normalising");
  const Value x = net.data("x", {kBatch, 6}, f32);
  Value h = reshape(batch_norm(x), {kBatch, 2, 3});
  h = batch_norm(h + scalar_like(h, offset), {.act = Act::tanh});
  h = batch_norm(linear(reshape(h, {kBatch, 6}), {.units = 8, .act = Act::tanh}));
  classify(net, p == 0 ? h : dropout(h, {.p = p}), rules);
  return net;
}

Dataset parallel_samples(int64_t count) {
  Tensor x(f32, {count, 6}), label(i64, {count});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(std::sin(3.0 * double(i)));
  }
  for (int64_t i = 0; i < count; ++i) label.as<int64_t>()[static_cast<size_t>(i)] = i % 3;
  return {{{"x", x}, {"label", label}}};
}

std::string text_of(const Seen& seen) {
  std::string text(sizeof(size_t), 0);
  const size_t count = seen.figures.size();
  std::memcpy(text.data(), &count, sizeof count);
  for (const auto* part : {&seen.figures, &seen.parameters}) {
    text.append(reinterpret_cast<const char*>(part->data()), part->size() * sizeof(double));
  }
  return text;
}

Seen seen_in(const std::string& text) {
  size_t count = 0;
  if (text.size() < sizeof count) return {};
  std::memcpy(&count, text.data(), sizeof count);
  std::vector<double> all((text.size() - sizeof count) / sizeof(double));
  std::memcpy(all.data(), text.data() + sizeof count, all.size() * sizeof(double));
  if (count > all.size()) {
    ADD_FAILURE() << text.substr(0, 300);
    return {};
  }
  const auto middle = all.begin() + static_cast<ptrdiff_t>(count);
  return {{all.begin(), middle}, {middle, all.end()}};
}

Seen trained(const Program& net, ExecutorOptions options, int64_t steps, int64_t samples,
             Place place, std::optional<int64_t> resume_at) {
  const World& world = options.distributed.world;
  Reader reader(
      parallel_samples(samples),
      {.batch = kWhole / world.size, .shuffle_seed = 1, .rank = world.rank, .world = world.size});
  options.threads = 1;
  options.seed = 7 + static_cast<uint64_t>(world.rank);  // rank 0's counts
  const std::vector<ir::Op*> recipes = recipes_of(net.ir().main());
  const bool has_one = recipes.size() == 1;
  std::optional<Executor> running;
  const auto start = [&] {
    running.emplace(net, place, options);
    running->prepare({.train = reader.batch_sizes()});
  };
  start();
  Seen seen;
  RunningMeans means(net.ir());
  for (int64_t step = 0; step < steps;) {
    for (const Batch& batch : reader) {
      if (step == resume_at) {
        Snapshot snapshot = with_copies(running->snapshot());
        start();
        EXPECT_EQ(running->restore(world.rank == 0 ? std::move(snapshot) : Snapshot()), "");
      }
      Executor& exe = *running;
      const ir::Op& recipe = *recipes[static_cast<size_t>(step) % recipes.size()];
      const OutputViews outputs = exe.run(recipe_name(recipe), batch);
      append_figures(outputs, has_one, seen.figures);
      means.add(outputs, batch.global_size());
      EXPECT_EQ(has_one && outputs.contains("scores"), has_one && batch.size > 0);
      adjust_rate(exe, recipe, step);
      if (++step == steps) break;
    }
  }
  Executor& exe = *running;
  if (has_other_metrics(net)) {
    for (const auto& [name, value] : means.values_with_gathered_rows(exe.process_group())) {
      seen.figures.push_back(value);
    }
  }
  append_parameters(exe, seen.parameters);
  if (averages_parameters(net.ir().main())) {
    exe.use_averages(true);
    append_parameters(exe, seen.parameters);
  }
  for (const ir::Op* recipe : recipes) {
    const auto scaling = exe.loss_scaling(recipe_name(*recipe));
    if (!scaling) continue;
    seen.parameters.push_back(scaling->scale);
    seen.parameters.push_back(static_cast<double>(scaling->skipped));
  }
  return seen;
}

Seen trained_by(int size, const Program& net, const ExecutorOptions& options, int64_t steps,
                int64_t samples, PlaceOf place_of, std::optional<int64_t> resume_at) {
  const auto body = [&](const World& world) {
    ExecutorOptions mine = options;
    mine.distributed.world = world;
    const Place place = place_of == nullptr ? cpu() : place_of(world.rank);
    return text_of(trained(net, mine, steps, samples, place, resume_at));
  };
  const std::vector<std::string> results = Ranks(size, body).results();
  for (const std::string& result : results) EXPECT_TRUE(result == results[0]) << result;
  return seen_in(results[0]);
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], relative * std::abs(b[i])) << i;
  }
}

Batch shard_of_batch(const World& world) {
  const int64_t count = kWhole / world.size, first = world.rank * count;
  Batch batch{.size = count, .columns = {}, .first = first, .global_batch_size = kWhole};
  for (const auto& [name, column] : parallel_samples().columns) {
    const int64_t bytes = column.bytes() / kSamples;
    std::vector<int64_t> shape = column.shape();
    shape[0] = count;
    Tensor part(column.dtype(), shape);
    std::memcpy(part.data(), static_cast<const std::byte*>(column.data()) + first * bytes,
                static_cast<size_t>(count * bytes));
    batch.columns.emplace_back(name, part);
  }
  return batch;
}

}  // namespace fluid::testing
