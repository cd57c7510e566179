#include "executor/fluidrun/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "executor/device/bytes_text.h"
#include "executor/trainer/inference.h"
#include "ir/stopwatch.h"

namespace fluid {
namespace {

constexpr int64_t kFullBatches = 3;   // timed steps of a full batch
constexpr int64_t kReadBatches = 10;  // timed reads

/// Samples of a step of all ranks, and how many such steps an epoch has; nullopt: unknown.
struct StepSize {
  int64_t samples = 0;
  std::optional<int64_t> steps = 0;
};

/// The batch size of a rank, and the sizes of the steps of an epoch: full ones, then the last one
/// if it is smaller.
struct EpochSizes {
  int64_t batch = 0;
  std::vector<StepSize> sizes;
};

/// The sizes of data that is read by index.
EpochSizes sizes_of(const Reader& data, int ranks) {
  const int64_t samples = *data.samples(), steps = *data.batches();
  const int64_t batch = steps > 1 ? data.batch_sizes().front() : (samples + ranks - 1) / ranks;
  const int64_t full = batch * ranks, last = samples - (steps - 1) * full;
  if (last == full) return {batch, {{full, steps}}};
  if (steps == 1) return {batch, {{last, 1}}};
  return {batch, {{full, steps - 1}, {last, 1}}};
}

/// Number of steps of an epoch; nullopt: unknown.
std::optional<int64_t> steps_of(const EpochSizes& epoch) {
  int64_t steps = 0;
  for (const StepSize& size : epoch.sizes) {
    if (!size.steps) return std::nullopt;
    steps += *size.steps;
  }
  return steps;
}

/// A reader of a few full batches, and of a last batch of the size that it has in an epoch.
struct FewBatches {
  EpochSizes epoch;
  Reader reader;
};

/// The first batches of `data`, which must outlive them.
FewBatches few_batches(Reader& data, const World& world) {
  ReaderOptions options = {.rank = world.rank, .world = world.size};
  if (data.indexed() == nullptr) {
    options.batch = data.batch_sizes().front();
    const int64_t full = options.batch * world.size, wanted = full * kFullBatches;
    Dataset first = data.read_first(wanted, 0);
    const bool ended = first.samples() < wanted;
    Reader reader(std::move(first), options);
    EpochSizes sizes = sizes_of(reader, world.size);
    if (!ended) sizes.sizes = {{full, std::nullopt}};
    return {std::move(sizes), std::move(reader)};
  }
  EpochSizes sizes = sizes_of(data, world.size);
  options.batch = sizes.batch;
  int64_t samples = 0;
  for (const StepSize& size : sizes.sizes) {
    samples += size.samples * std::min(*size.steps, kFullBatches);
  }
  const SampleSourcePtr source(std::shared_ptr<void>(), data.indexed());
  return {std::move(sizes), Reader(first_samples(source, samples), options)};
}

/// Mean milliseconds of steps, by their samples.
class MeanTimes {
 public:
  void add(int64_t samples, double ms) {
    Sum& sum = sums_[samples];
    sum.ms += ms;
    ++sum.steps;
  }
  double mean_ms(int64_t samples) const {
    const auto sum = sums_.find(samples);
    return sum == sums_.end() ? 0 : sum->second.ms / sum->second.steps;
  }

 private:
  struct Sum {
    double ms = 0;
    int steps = 0;
  };
  std::map<int64_t, Sum> sums_;
};

/// Prints a line for each size. Returns the milliseconds of an epoch; of a step if the number of
/// steps is unknown.
double print_times(const char* name, const EpochSizes& epoch, const MeanTimes& times) {
  double all = 0;
  for (const StepSize& size : epoch.sizes) {
    const double ms = times.mean_ms(size.samples);
    all += ms * static_cast<double>(size.steps.value_or(1));
    fmt::print("{:<10}  {:>7}  {:>14}  {:>7.3f}\n", name, size.samples,
               size.steps ? std::to_string(*size.steps) : "?", ms);
  }
  return all;
}

MeanTimes time_training(Trainer& trainer, FitOptions options, Reader& few) {
  MeanTimes times;
  options.epochs = 2;  // the steps of the first epoch warm up
  options.max_steps = 0;
  options.validation = nullptr;
  options.best.clear();
  options.patience.reset();
  options.save.clear();
  options.save_best.clear();
  options.on_step = [&](const StepEvent& step) {
    if (step.epoch == 2) times.add(step.samples, step.ms);
  };
  options.on_epoch_begin = nullptr;
  options.on_epoch = nullptr;
  options.on_end = nullptr;
  trainer.fit(few, options);
  return times;
}

MeanTimes time_validation(Trainer& trainer, Reader& few) {
  trainer.evaluate(few);  // warms up
  MeanTimes times;
  Stopwatch watch;
  trainer.evaluate(few, [&](const Batch& batch, const OutputViews&) {
    times.add(batch.global_size(), watch.ms());
    watch = Stopwatch();
  });
  return times;
}

/// Milliseconds in which the workers read a batch.
double time_reading(Reader& data) {
  data.next();
  int64_t batches = 0;
  const Stopwatch watch;
  while (batches < kReadBatches && data.next() != nullptr) ++batches;
  return batches == 0 ? 0 : watch.ms() / static_cast<double>(batches);
}

/// Prints the duration of an epoch of `batches` steps and of the training, which --max-steps may
/// cut off. If the number of steps is unknown, `step_ms` is of a step, without validation.
void print_duration(const FitOptions& options, std::optional<int64_t> steps_an_epoch,
                    double training_ms, double reading_ms, double validation_ms) {
  if (!steps_an_epoch) {
    const double step_ms = std::max(training_ms, reading_ms);
    fmt::print("the number of steps of an epoch is unknown: the data is a stream\n");
    if (options.max_steps == 0) return;
    fmt::print("{} steps take about {:.3g} s\n", options.max_steps,
               static_cast<double>(options.max_steps) * step_ms / 1e3);
    return;
  }
  const auto steps = static_cast<double>(*steps_an_epoch);
  const double seconds = (std::max(training_ms, reading_ms * steps) + validation_ms) / 1e3;
  auto epochs = static_cast<double>(options.epochs);
  if (options.max_steps > 0) {
    epochs = std::min(epochs, static_cast<double>(options.max_steps) / steps);
  }
  fmt::print("an epoch takes about {:.3g} s, the training {:.3g} s\n", seconds, seconds * epochs);
}

}  // namespace

void dry_run(Trainer& trainer, FitOptions options, Reader& train, const World& world) {
  Executor& executor = trainer.executor();
  FewBatches training = few_batches(train, world);
  std::optional<FewBatches> validation;
  if (options.validation != nullptr) {
    validation.emplace(few_batches(*options.validation, world));
    executor.prepare({.eval = inference_batch_sizes(validation->reader),
                      .lengths = lengths_of(executor, options.validation->source())});
  }
  const MeanTimes training_times = time_training(trainer, options, training.reader);
  MeanTimes validation_times;
  if (validation) validation_times = time_validation(trainer, validation->reader);
  const double reading_ms = time_reading(train);
  if (world.rank != 0) return;

  fmt::print("{:<10}  {:>7}  {:>14}  {:>7}\n", "step", "samples", "steps an epoch", "ms");
  const double training_ms = print_times("training", training.epoch, training_times);
  const double validation_ms =
      validation ? print_times("validation", validation->epoch, validation_times) : 0;
  const MemoryUse memory = executor.memory();
  fmt::print("reading a batch takes {:.3f} ms\n", reading_ms);
  fmt::print("the arena takes {}, {} of it for variables\n",
             bytes_text(static_cast<double>(memory.total)),
             bytes_text(static_cast<double>(memory.state)));
  print_duration(options, steps_of(training.epoch), training_ms, reading_ms, validation_ms);
}

}  // namespace fluid
