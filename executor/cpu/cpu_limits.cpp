#include "executor/cpu/cpu_limits.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>

#include "executor/cpu/parallel.h"
#include "executor/profile/step_times.h"

namespace fluid {
namespace {

constexpr int64_t kWords = int64_t{1} << 25;  // 256 MiB
constexpr int kPasses = 4;

/// Words that threads read; what they add up to is kept, so that it must be read.
struct Stretch {
  uint64_t* words;
  std::atomic<uint64_t> sum = 0;
};

void fill(void* context, int64_t begin, int64_t end) {
  uint64_t* words = static_cast<Stretch*>(context)->words;
  for (int64_t i = begin; i < end; ++i) words[i] = static_cast<uint64_t>(i);
}

void add_up(void* context, int64_t begin, int64_t end) {
  auto& stretch = *static_cast<Stretch*>(context);
  uint64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += stretch.words[i];
  stretch.sum += sum;
}

/// Bytes a second, the best of some passes.
double read_rate(int threads) {
  const auto memory = std::make_unique_for_overwrite<uint64_t[]>(kWords);
  Stretch stretch{.words = memory.get()};
  parallel_for(kWords, threads, fill, &stretch);
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kPasses; ++i) {
    const int64_t begin = clock_ns();
    parallel_for(kWords, threads, add_up, &stretch);
    best = std::min(best, clock_ns() - begin);
  }
  return 1e9 * static_cast<double>(kWords * sizeof(uint64_t)) / static_cast<double>(best);
}

}  // namespace

Limits cpu_limits(const TargetDescription& cpu) {
  const double flops = cpu.gflops_f32 * 1e9 * cpu.threads;
  return {.flops_f64 = flops / 2,
          .flops_f32 = flops,
          .flops_f16 = flops,  // which is computed in f32
          .flops_bf16 = cpu.bf16 ? 2 * flops : flops,
          .bytes = read_rate(cpu.threads)};
}

}  // namespace fluid
