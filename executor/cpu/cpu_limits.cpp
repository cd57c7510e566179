#include "executor/cpu/cpu_limits.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "executor/cpu/parallel.h"
#include "executor/device/step_times.h"

namespace fluid {
namespace {

constexpr int64_t kWords = int64_t{1} << 25;  // 256 MiB
constexpr int kPasses = 4;

void count(void* words, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ++static_cast<uint64_t*>(words)[i];
}

/// Measures memory bandwidth in bytes/s, reads plus writes. Returns the best of several passes.
double memory_rate(int threads) {
  const auto memory = std::make_unique_for_overwrite<uint64_t[]>(kWords);
  std::memset(memory.get(), 0, kWords * sizeof(uint64_t));
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kPasses; ++i) {
    const int64_t begin = clock_ns();
    parallel_for(kWords, threads, count, memory.get());
    best = std::min(best, clock_ns() - begin);
  }
  return 1e9 * static_cast<double>(2 * kWords * sizeof(uint64_t)) / static_cast<double>(best);
}

}  // namespace

Limits cpu_limits(const TargetDescription& cpu) {
  const double flops = cpu.gflops_f32 * 1e9 * cpu.threads;
  return {.flops_f64 = flops / 2,
          .flops_f32 = flops,
          .flops_f16 = flops,  // f16 is computed in f32
          .flops_bf16 = cpu.bf16 ? 2 * flops : flops,
          .bytes = memory_rate(cpu.threads)};
}

}  // namespace fluid
