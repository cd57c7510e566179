#include "executor/fluidrun/bench_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "executor/device/bytes_text.h"
#include "executor/fluidrun/inputs.h"
#include "executor/trainer/inference.h"
#include "ir/stopwatch.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Returns the feeds of a step. A predict step has those on which an output with one row per sample
/// depends.
std::vector<const ir::Op*> step_feeds(const Program& program, Mode mode) {
  std::vector<const ir::Op*> feeds = feeds_of(program.ir());
  if (mode != Mode::predict) return feeds;
  const std::vector<std::string> rows = per_sample_outputs(program);
  Values computed;
  for (const ir::Output& o : program.ir().main().outputs) {
    if (std::ranges::find(rows, o.name) != rows.end()) computed.push_back(o.value);
  }
  const std::set<const ir::Op*> needed = ancestors(computed);
  if (!rows.empty()) std::erase_if(feeds, [&](const ir::Op* f) { return !needed.contains(f); });
  return feeds;
}

/// Returns a batch of random floats in [0, 1). Integers are 0, a valid class and index.
Batch random_batch(const std::vector<const ir::Op*>& feeds, int64_t size) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(0, 1);
  Batch batch;
  batch.size = size;
  for (const ir::Op* feed : feeds) {
    const Type& type = feed->results[0].type;
    std::vector<int64_t> shape;
    for (const Dim& d : type.shape) shape.push_back(d.at(size));
    Tensor numbers(is_float(type.dtype) ? f32 : type.dtype, shape);
    if (is_float(type.dtype)) {
      for (float& x : numbers.as<float>()) x = uniform(generator);
    }
    batch.columns.emplace_back(feed->symbol, numbers.cast(type.dtype));
  }
  return batch;
}

}  // namespace

void InferenceBench::run(Program program, Place place, ExecutorOptions options) const {
  Batch random;
  std::optional<Reader> reader;
  const Batch* batch_of_data = nullptr;
  if (data.empty()) {
    apply_length_flag(program, length);
    random = random_batch(step_feeds(program, mode), std::max<int64_t>(batch, 1));
  } else {
    reader.emplace(open_predict_reader(program, data, batch, reading, {}));
    batch_of_data = reader->next();  // not null: data without samples cannot be opened
  }
  const Batch& feeds = batch_of_data == nullptr ? random : *batch_of_data;
  set_profile(options, profile);
  Executor executor(program, place, std::move(options));
  const bool predicts = mode == Mode::predict;
  std::vector<std::string> names;
  for (const auto& [name, column] : feeds.columns) names.push_back(name);
  BatchSizes sizes{.lengths = executor.lengths_of(feeds)};
  (predicts ? sizes.predict : sizes.eval) = {feeds.size};
  if (predicts) sizes.predict_feeds = names;
  const Stopwatch preparation;
  executor.prepare(sizes);
  const double prepared = preparation.ms();
  const auto time_step = [&] {
    const Stopwatch watch;
    predicts ? executor.predict(feeds) : executor.eval(feeds);
    return watch.ms();
  };
  const double first = time_step();
  for (int64_t i = 1; i < warmup; ++i) time_step();
  std::vector<double> times;
  for (int64_t i = 0; i < steps; ++i) times.push_back(time_step());
  std::ranges::sort(times);
  const auto percentile = [&](int64_t percent) {
    return times[static_cast<size_t>((steps * percent + 99) / 100 - 1)];
  };
  fmt::print("{:.4f} ms/step (median of {} steps, 95 % take at most {:.4f}), {:.0f} samples/s\n",
             percentile(50), steps, percentile(95),
             1e3 * static_cast<double>(feeds.size) / percentile(50));
  report_profile(executor, profile);
  const CompileReport report = executor.compile_report();
  fmt::print(
      "prepared in {:.1f} ms, {} of {} programs from the cache; first step {:.1f} ms; arena {}\n",
      prepared, report.cached_programs, report.programs + report.cached_programs, first,
      bytes_text(static_cast<double>(executor.memory().total)));
}

}  // namespace fluid
