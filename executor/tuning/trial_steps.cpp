#include "executor/tuning/trial_steps.h"

#include <algorithm>
#include <random>

#include "executor/session/prepared_step.h"
#include "ir/stopwatch.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

constexpr size_t kMinCalls = 5, kMaxCalls = 100;  // bounds on the number of timed steps

Tensor trial_input(const Type& type, int64_t samples) {
  const std::vector<int64_t> shape = extents(type.shape, samples);
  if (!is_float(type.dtype)) return {type.dtype, shape};
  Tensor noise(f32, shape);
  std::mt19937 random(1);
  for (float& x : noise.as<float>()) x = static_cast<float>(random()) / 4294967296.0F;
  return noise.cast(type.dtype);
}

}  // namespace

Batch synthetic_batch(const Program& program, int64_t samples) {
  Batch batch{.size = samples, .columns = {}};
  for (const auto& op : program.ir().main().ops) {
    if (source_kind(*op) != SourceKind::feed) continue;
    batch.columns.emplace_back(op->symbol, trial_input(op->results[0].type, samples));
  }
  return batch;
}

std::vector<double> time_steps(const std::function<void()>& step, double budget_ms) {
  for (size_t i = 0; i < kWarmUpSteps; ++i) step();
  std::vector<double> times;
  const Stopwatch total;
  while (times.size() < kMinCalls || (times.size() < kMaxCalls && total.ms() < budget_ms)) {
    const Stopwatch watch;
    step();
    times.push_back(watch.ms());
  }
  return times;
}

double median(std::span<const double> times) {
  std::vector<double> sorted(times.begin(), times.end());
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

}  // namespace fluid
