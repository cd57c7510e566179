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

/// Samples of a step of all ranks, and how many such steps an epoch has.
struct StepSize {
  int64_t samples = 0, steps = 0;
};

/// The batch size of a rank, and the sizes of the steps of an epoch: full ones, then the last one
/// if it is smaller.
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

/// A reader of the first samples of `data`: a few full batches, and a last batch of the size that
/// it has in an epoch of `data`. `data` must outlive it.
Reader reader_of_few(const Reader& data, const EpochSizes& epoch, const World& world) {
  int64_t samples = 0;
  for (const StepSize& size : epoch.sizes) {
    samples += size.samples * std::min(size.steps, kFullBatches);
  }
  const SampleSourcePtr source(std::shared_ptr<void>(), &data.source());
  return Reader(first_samples(source, samples),
                {.batch = epoch.batch, .rank = world.rank, .world = world.size});
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

/// Prints a line for each size. Returns the milliseconds of an epoch.
double print_times(const char* name, const EpochSizes& epoch, const MeanTimes& times) {
  double all = 0;
  for (const StepSize& size : epoch.sizes) {
    const double ms = times.mean_ms(size.samples);
    all += ms * static_cast<double>(size.steps);
    fmt::print("{:<10}  {:>7}  {:>14}  {:>7.3f}\n", name, size.samples, size.steps, ms);
  }
  return all;
}

MeanTimes time_training(Trainer& trainer, FitOptions options, const Reader& train,
                        const EpochSizes& epoch, const World& world) {
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
  Reader few = reader_of_few(train, epoch, world);
  trainer.fit(few, options);
  return times;
}

MeanTimes time_validation(Trainer& trainer, const FitOptions& options, const EpochSizes& epoch,
                          const World& world) {
  Reader few = reader_of_few(*options.validation, epoch, world);
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

/// Epochs that training runs, which --max-steps may cut off.
double epochs_of(const FitOptions& options, const Reader& train) {
  const auto epochs = static_cast<double>(options.epochs);
  if (options.max_steps == 0) return epochs;
  return std::min(epochs,
                  static_cast<double>(options.max_steps) / static_cast<double>(train.batches()));
}

}  // namespace

void dry_run(Trainer& trainer, FitOptions options, Reader& train, const World& world) {
  Executor& executor = trainer.executor();
  const EpochSizes training = sizes_of(train, world.size);
  std::optional<EpochSizes> validation;
  if (options.validation != nullptr) {
    validation = sizes_of(*options.validation, world.size);
    executor.prepare({.eval = inference_batch_sizes(*options.validation),
                      .lengths = lengths_of(executor, options.validation->source())});
  }
  const MeanTimes training_times = time_training(trainer, options, train, training, world);
  MeanTimes validation_times;
  if (validation) validation_times = time_validation(trainer, options, *validation, world);
  const double reading_ms = time_reading(train);
  if (world.rank != 0) return;

  fmt::print("{:<10}  {:>7}  {:>14}  {:>7}\n", "step", "samples", "steps an epoch", "ms");
  const double training_ms = print_times("training", training, training_times);
  const double validation_ms =
      validation ? print_times("validation", *validation, validation_times) : 0;
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
