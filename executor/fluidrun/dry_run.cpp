#include "executor/fluidrun/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/bytes_text.h"
#include "executor/trainer/inference.h"
#include "executor/trainer/recipe_cycle.h"
#include "ir/stopwatch.h"

namespace fluid {
namespace {

constexpr int64_t kFullBatches = 3;   // number of full batches to time
constexpr int64_t kReadBatches = 10;  // number of batches to read in time_reading()

/// A global batch size, and the number of steps per epoch that have this batch size.
struct StepSize {
  int64_t samples = 0;               ///< samples per step, summed over the ranks
  std::optional<int64_t> steps = 0;  ///< number of steps per epoch; nullopt: unknown
};

/// The batch size per rank, and the global batch sizes of an epoch: full batches, then a smaller
/// last batch if there is one.
struct EpochSizes {
  int64_t batch = 0;
  std::vector<StepSize> sizes;
};

/// Returns the batch sizes of an epoch of `data`, whose number of samples must be known.
EpochSizes sizes_of(const Reader& data, int ranks) {
  const int64_t samples = *data.samples(), steps = *data.batches();
  const int64_t batch = steps > 1 ? data.batch_sizes().front() : (samples + ranks - 1) / ranks;
  const int64_t full = batch * ranks, last = samples - (steps - 1) * full;
  if (last == full) return {batch, {{full, steps}}};
  if (steps == 1) return {batch, {{last, 1}}};
  return {batch, {{full, steps - 1}, {last, 1}}};
}

/// Returns the number of steps per epoch; nullopt: unknown.
std::optional<int64_t> steps_of(const EpochSizes& epoch) {
  int64_t steps = 0;
  for (const StepSize& size : epoch.sizes) {
    if (!size.steps) return std::nullopt;
    steps += *size.steps;
  }
  return steps;
}

/// A reader of a few full batches, followed by the smaller last batch of an epoch if there is one.
struct FewBatches {
  EpochSizes epoch;  ///< batch sizes of an epoch over the whole data
  Reader reader;
};

/// Returns a reader of the first samples of `data`: at most `full_batches` full batches, and the
/// smaller last batch. `data` must outlive the reader.
FewBatches few_batches(Reader& data, int64_t full_batches) {
  ReaderOptions options = data.options();
  options.shuffle_seed.reset();
  options.shuffle_buffer = 0;
  if (data.as_sample_source() == nullptr) {
    const int64_t full = options.batch * options.world, wanted = full * full_batches;
    Dataset first = data.read_first(wanted, 0);
    const bool ended = first.samples() < wanted;
    options.workers = 1;
    Reader reader(std::move(first), options);
    EpochSizes sizes = sizes_of(reader, options.world);
    if (!ended) sizes.sizes = {{full, std::nullopt}};
    return {std::move(sizes), std::move(reader)};
  }
  EpochSizes sizes = sizes_of(data, options.world);
  options.batch = sizes.batch;
  int64_t samples = 0;
  for (const StepSize& size : sizes.sizes) {
    samples += size.samples * std::min(*size.steps, full_batches);
  }
  const SampleSourcePtr source(std::shared_ptr<void>(), data.as_sample_source());
  return {std::move(sizes), Reader(first_samples(source, samples), options)};
}

/// Mean step times in milliseconds, by recipe and number of samples.
class MeanTimes {
 public:
  void add(const std::string& recipe, int64_t samples, double ms) {
    Sum& sum = sums_[{recipe, samples}];
    sum.ms += ms;
    ++sum.steps;
  }
  /// Returns the mean time of the steps of `recipe` with `samples` samples. If no such step was
  /// timed, returns the mean time of the recipe's steps with the most samples. Returns 0 if this
  /// rank timed no step.
  double mean_ms(const std::string& recipe, int64_t samples) const {
    if (sums_.empty()) return 0;
    auto sum = sums_.find({recipe, samples});
    if (sum == sums_.end()) sum = std::prev(sums_.upper_bound({recipe, INT64_MAX}));
    return sum->second.ms / sum->second.steps;
  }

 private:
  struct Sum {
    double ms = 0;
    int steps = 0;
  };
  std::map<std::pair<std::string, int64_t>, Sum> sums_;
};

/// A row of the printed table: the steps of an epoch that have the same name and the same number of
/// samples.
struct TimedSteps {
  std::string name;
  int64_t samples = 0;
  std::optional<int64_t> steps = 0;  ///< number of steps per epoch; nullopt: unknown
  double ms = 0;
};

/// The training steps of the first epoch, by recipe: full batches, then the smaller last batch.
std::vector<TimedSteps> training_steps(const EpochSizes& epoch, const RecipeCycle& cycle,
                                       const MeanTimes& times) {
  std::vector<TimedSteps> all;
  int64_t end = 0;
  for (const StepSize& size : epoch.sizes) {
    const int64_t begin = std::exchange(end, end + size.steps.value_or(0));
    for (size_t i = 0; i < cycle.recipes().size(); ++i) {
      const std::string& name = cycle.recipes()[i].name;
      std::optional<int64_t> steps = cycle.steps_of(i, end) - cycle.steps_of(i, begin);
      if (!size.steps) steps.reset();
      if (steps == 0) continue;
      all.push_back({name.empty() ? "training" : name, size.samples, steps,
                     times.mean_ms(name, size.samples)});
    }
  }
  return all;
}

std::vector<TimedSteps> validation_steps(const EpochSizes& epoch, const MeanTimes& times) {
  std::vector<TimedSteps> all;
  for (const StepSize& size : epoch.sizes) {
    all.push_back({"validation", size.samples, size.steps, times.mean_ms("", size.samples)});
  }
  return all;
}

void print_table(const std::vector<TimedSteps>& lines) {
  size_t width = 10;
  for (const TimedSteps& line : lines) width = std::max(width, line.name.size());
  fmt::print("{:<{}}  {:>7}  {:>14}  {:>7}\n", "step", width, "samples", "steps an epoch", "ms");
  for (const TimedSteps& line : lines) {
    fmt::print("{:<{}}  {:>7}  {:>14}  {:>7.3f}\n", line.name, width, line.samples,
               line.steps ? std::to_string(*line.steps) : "?", line.ms);
  }
}

/// Returns the time of an epoch in milliseconds: the sum over the rows of the table. Omits rows
/// with an unknown number of steps.
double epoch_ms(const std::vector<TimedSteps>& lines) {
  double ms = 0;
  for (const TimedSteps& line : lines) ms += line.ms * static_cast<double>(line.steps.value_or(0));
  return ms;
}

/// Returns the mean time in milliseconds of a step with `samples` samples. The mean is over one
/// cycle of the recipes.
double mean_step_ms(const RecipeCycle& cycle, const MeanTimes& times, int64_t samples) {
  double ms = 0;
  for (const FitRecipe& recipe : cycle.recipes()) {
    ms += static_cast<double>(recipe.steps) * times.mean_ms(recipe.name, samples);
  }
  return ms / static_cast<double>(cycle.length());
}

MeanTimes time_training(Trainer& trainer, FitOptions options, Reader& few,
                        const RecipeCycle& cycle) {
  MeanTimes times;
  // The first epoch is the warm-up. The other epochs are timed; they contain at least one cycle of
  // the recipes.
  options.epochs = 1 + (cycle.length() + *few.batches() - 1) / *few.batches();
  options.max_steps = 0;
  options.validation = nullptr;
  options.best.clear();
  options.patience.reset();
  options.save.clear();
  options.save_best.clear();
  options.on_step = [&](const StepEvent& step) {
    if (step.epoch > 1) times.add(step.recipe, step.samples, step.ms);
  };
  options.on_epoch_begin = nullptr;
  options.on_epoch = nullptr;
  options.on_end = nullptr;
  trainer.fit(few, options);
  return times;
}

MeanTimes time_validation(Trainer& trainer, Reader& few) {
  trainer.evaluate(few);  // warm-up
  MeanTimes times;
  Stopwatch watch;
  trainer.evaluate(few, [&](const Batch& batch, const OutputViews&) {
    times.add("", batch.global_size(), watch.ms());
    watch = Stopwatch();
  });
  return times;
}

/// Returns the mean time in milliseconds until the reader's workers deliver the next batch.
double time_reading(Reader& data) {
  data.next();
  const Stopwatch watch;
  for (int64_t batches = 0; batches < kReadBatches;) {
    if (data.next() != nullptr) ++batches;  // null at the end of an epoch
  }
  return watch.ms() / static_cast<double>(kReadBatches);
}

/// Prints the duration of an epoch, and of the training run with at most --max-steps steps.
void print_duration(const FitOptions& options, int64_t steps_per_epoch, double epoch_ms) {
  auto epochs = static_cast<double>(options.epochs);
  if (options.max_steps > 0) {
    epochs = std::min(
        epochs, static_cast<double>(options.max_steps) / static_cast<double>(steps_per_epoch));
  }
  fmt::print("an epoch takes about {:.3g} s, the training {:.3g} s\n", epoch_ms / 1e3,
             epoch_ms / 1e3 * epochs);
}

/// Prints the duration of --max-steps steps on a stream. The epochs of a stream have an unknown
/// number of steps.
void print_stream_duration(const FitOptions& options, double step_ms) {
  fmt::print("the number of steps of an epoch is unknown: the data is a stream\n");
  if (options.max_steps == 0) return;
  fmt::print("{} steps take about {:.3g} s\n", options.max_steps,
             static_cast<double>(options.max_steps) * step_ms / 1e3);
}

}  // namespace

void dry_run(const Program& program, Trainer& trainer, FitOptions options, Reader& train,
             const World& world) {
  Executor& executor = trainer.executor();
  const RecipeCycle cycle(program, options.recipes);
  FewBatches training = few_batches(train, std::max(kFullBatches, cycle.length()));
  std::optional<FewBatches> validation;
  if (options.validation != nullptr) {
    validation.emplace(few_batches(*options.validation, kFullBatches));
    executor.prepare({.eval = inference_batch_sizes(validation->reader),
                      .lengths = lengths_of(executor, options.validation->source())});
  }
  const MeanTimes training_times = time_training(trainer, options, training.reader, cycle);
  std::vector<TimedSteps> lines = training_steps(training.epoch, cycle, training_times);
  const double training_ms = epoch_ms(lines);
  if (validation) {
    std::ranges::copy(
        validation_steps(validation->epoch, time_validation(trainer, validation->reader)),
        std::back_inserter(lines));
  }
  const double validation_ms = epoch_ms(lines) - training_ms;
  const double reading_ms = time_reading(train);
  if (world.rank != 0) return;

  print_table(lines);
  const MemoryUse memory = executor.memory();
  fmt::print("reading a batch takes {:.3f} ms\n", reading_ms);
  fmt::print("the arena takes {}, {} of it for variables\n",
             bytes_text(static_cast<double>(memory.total)),
             bytes_text(static_cast<double>(memory.state)));
  const std::optional<int64_t> steps = steps_of(training.epoch);
  if (!steps) {
    const int64_t samples = training.epoch.sizes.front().samples;
    const double step_ms = mean_step_ms(cycle, training_times, samples);
    return print_stream_duration(options, std::max(step_ms, reading_ms));
  }
  const double read_ms = reading_ms * static_cast<double>(*steps);
  print_duration(options, *steps, std::max(training_ms, read_ms) + validation_ms);
}

}  // namespace fluid
