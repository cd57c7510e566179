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

constexpr int64_t kFullBatches = 3;   // timed steps of a full batch
constexpr int64_t kReadBatches = 10;  // timed reads

/// Number of samples of a step on all ranks together, and number of such steps per epoch.
struct StepSize {
  int64_t samples = 0, steps = 0;
};

/// The batch size of a rank, and the step sizes of an epoch: full steps, then a smaller last step
/// if there is one.
struct EpochSizes {
  int64_t batch = 0;
  std::vector<StepSize> sizes;
};

EpochSizes sizes_of(const Reader& data, int ranks) {
  const int64_t samples = data.samples(), steps = data.batches();
  const int64_t batch = steps > 1 ? data.batch_sizes().front() : (samples + ranks - 1) / ranks;
  const int64_t full = batch * ranks, last = samples - (steps - 1) * full;
  if (last == full) return {batch, {{full, steps}}};
  if (steps == 1) return {batch, {{last, 1}}};
  return {batch, {{full, steps - 1}, {last, 1}}};
}

/// Returns a reader of the first samples of `data`: `full_batches` full batches, and the smaller
/// last batch of an epoch if there is one. `data` must outlive the reader.
Reader reader_of_few(const Reader& data, const EpochSizes& epoch, int64_t full_batches) {
  int64_t samples = 0;
  for (const StepSize& size : epoch.sizes) {
    samples += size.samples * std::min(size.steps, full_batches);
  }
  const SampleSourcePtr source(std::shared_ptr<void>(), &data.source());
  ReaderOptions options = data.options();
  options.batch = epoch.batch;
  options.shuffle_seed.reset();
  return Reader(first_samples(source, samples), options);
}

/// Mean step times in milliseconds, by recipe and number of samples.
class MeanTimes {
 public:
  void add(const std::string& recipe, int64_t samples, double ms) {
    Sum& sum = sums_[{recipe, samples}];
    sum.ms += ms;
    ++sum.steps;
  }
  /// The mean time of the steps of `recipe` with `samples` samples. If no such step was timed,
  /// returns the mean of the recipe's largest steps.
  double mean_ms(const std::string& recipe, int64_t samples) const {
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

/// Equal steps of an epoch: a line of the table.
struct TimedSteps {
  std::string name;
  int64_t samples = 0, steps = 0;
  double ms = 0;
};

/// The training steps of the first epoch, by recipe: full steps, then the smaller last step.
std::vector<TimedSteps> training_steps(const EpochSizes& epoch, const RecipeCycle& cycle,
                                       const MeanTimes& times) {
  std::vector<TimedSteps> all;
  int64_t end = 0;
  for (const StepSize& size : epoch.sizes) {
    const int64_t begin = std::exchange(end, end + size.steps);
    for (size_t i = 0; i < cycle.recipes().size(); ++i) {
      const std::string& name = cycle.recipes()[i].name;
      const int64_t steps = cycle.steps_of(i, end) - cycle.steps_of(i, begin);
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
    fmt::print("{:<{}}  {:>7}  {:>14}  {:>7.3f}\n", line.name, width, line.samples, line.steps,
               line.ms);
  }
}

double epoch_ms(const std::vector<TimedSteps>& lines) {
  double ms = 0;
  for (const TimedSteps& line : lines) ms += line.ms * static_cast<double>(line.steps);
  return ms;
}

MeanTimes time_training(Trainer& trainer, FitOptions options, const Reader& train,
                        const EpochSizes& epoch, const RecipeCycle& cycle) {
  MeanTimes times;
  Reader few = reader_of_few(train, epoch, std::max(kFullBatches, cycle.length()));
  // The first epoch warms up. The later epochs contain at least one cycle and are timed.
  options.epochs = 1 + (cycle.length() + few.batches() - 1) / few.batches();
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

MeanTimes time_validation(Trainer& trainer, const Reader& validation, const EpochSizes& epoch) {
  Reader few = reader_of_few(validation, epoch, kFullBatches);
  trainer.evaluate(few);  // warms up
  MeanTimes times;
  Stopwatch watch;
  trainer.evaluate(few, [&](const Batch& batch, const OutputViews&) {
    times.add("", batch.global_size(), watch.ms());
    watch = Stopwatch();
  });
  return times;
}

/// Milliseconds per batch that the workers read.
double time_reading(Reader& data) {
  data.next();
  const Stopwatch watch;
  for (int64_t batches = 0; batches < kReadBatches;) {
    if (data.next() != nullptr) ++batches;  // null at the end of an epoch
  }
  return watch.ms() / static_cast<double>(kReadBatches);
}

/// Number of epochs of training, a fraction if --max-steps ends training within an epoch.
double epochs_of(const FitOptions& options, const Reader& train) {
  const auto epochs = static_cast<double>(options.epochs);
  if (options.max_steps == 0) return epochs;
  return std::min(epochs,
                  static_cast<double>(options.max_steps) / static_cast<double>(train.batches()));
}

}  // namespace

void dry_run(const Program& program, Trainer& trainer, FitOptions options, Reader& train,
             const World& world) {
  Executor& executor = trainer.executor();
  const RecipeCycle cycle(program, options.recipes);
  const EpochSizes training = sizes_of(train, world.size);
  std::optional<EpochSizes> validation;
  if (options.validation != nullptr) {
    validation = sizes_of(*options.validation, world.size);
    executor.prepare({.eval = inference_batch_sizes(*options.validation),
                      .lengths = lengths_of(executor, options.validation->source())});
  }
  std::vector<TimedSteps> steps =
      training_steps(training, cycle, time_training(trainer, options, train, training, cycle));
  const double training_ms = epoch_ms(steps);
  if (validation) {
    std::ranges::copy(
        validation_steps(*validation, time_validation(trainer, *options.validation, *validation)),
        std::back_inserter(steps));
  }
  const double validation_ms = epoch_ms(steps) - training_ms;
  const double reading_ms = time_reading(train);
  if (world.rank != 0) return;

  print_table(steps);
  const MemoryUse memory = executor.memory();
  fmt::print("reading a batch takes {:.3f} ms\n", reading_ms);
  fmt::print("the arena takes {}, {} of it for variables\n",
             bytes_text(static_cast<double>(memory.total)),
             bytes_text(static_cast<double>(memory.state)));
  const double read_ms = reading_ms * static_cast<double>(train.batches());
  const double epoch_seconds = (std::max(training_ms, read_ms) + validation_ms) / 1e3;
  fmt::print("an epoch takes about {:.3g} s, the training {:.3g} s\n", epoch_seconds,
             epoch_seconds * epochs_of(options, train));
}

}  // namespace fluid
