#include "executor/host/measure_rates.h"

#include <sched.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "executor/device/step_times.h"
#include "executor/host/arena.h"
#include "executor/host/peak_loops.h"

namespace fluid {
namespace {

constexpr int64_t kRoundNs = 1'000'000;    // minimum time of a round
constexpr int kRounds = 12;                // rounds of a measurement
constexpr int64_t kBudgetNs = 60'000'000;  // a measurement ends after the round that exceeds it
constexpr int64_t kIterations = 1024;      // iterations of a PeakLoop in a pass

/// Does `passes` passes of the work of one thread.
using Work = std::function<void(int thread, int64_t passes)>;

/// Runs rounds of equal work on several threads at once.
class Rounds {
 public:
  Rounds(int threads, const Work& work)
      : work_(work), spans_(static_cast<size_t>(threads)), next_(threads, EndRound{this}) {}

  /// Returns the passes per ns of the best round, summed over the threads.
  double best_passes_per_ns() {
    const auto threads = std::ssize(spans_);
    std::vector<std::jthread> others;
    try {
      while (std::ssize(others) < threads - 1) {
        const int thread = static_cast<int>(others.size()) + 1;
        others.emplace_back([this, thread] { run(thread); });
      }
    } catch (...) {
      stop_ = true;
      for (auto absent = std::ssize(others); absent < threads; ++absent) next_.arrive_and_drop();
      throw;
    }
    run(0);
    return best_;
  }

 private:
  struct EndRound {
    Rounds* rounds;
    void operator()() noexcept { rounds->end_round(); }
  };

  void run(int thread) {
    TimeSpan& span = spans_[static_cast<size_t>(thread)];
    while (next_.arrive_and_wait(), !stop_) {
      span.begin = clock_ns();
      work_(thread, passes_);
      span.end = clock_ns();
    }
  }

  /// Runs between two rounds, while all threads wait.
  void end_round() {
    const int64_t begin = std::ranges::min_element(spans_, {}, &TimeSpan::begin)->begin;
    const int64_t end = std::ranges::max_element(spans_, {}, &TimeSpan::end)->end;
    if (stop_ || end == 0) return;  // the first round has not begun
    if (first_begin_ == 0) first_begin_ = begin;
    const bool is_last = end - first_begin_ > kBudgetNs;
    const int64_t ns = std::max<int64_t>(end - begin, 1);
    const auto passes = static_cast<double>(passes_ * std::ssize(spans_));
    if (ns >= kRoundNs || is_last) {
      best_ = std::max(best_, passes / static_cast<double>(ns));
      ++rounds_;
    }
    if (ns < kRoundNs) passes_ *= 2;
    stop_ = stop_ || is_last || rounds_ == kRounds;
  }

  const Work& work_;
  std::vector<TimeSpan> spans_;  ///< span of each thread in the last round
  int64_t passes_ = 1, first_begin_ = 0;
  int rounds_ = 0;
  double best_ = 0;
  bool stop_ = false;
  std::barrier<EndRound> next_;
};

double best_passes_per_ns(int threads, const Work& work) {
  return Rounds(threads, work).best_passes_per_ns();
}

double gops_of(const PeakLoop& loop, int threads) {
  const Work work = [&](int, int64_t passes) { loop.run(passes * kIterations); };
  return best_passes_per_ns(threads, work) * static_cast<double>(loop.ops * kIterations);
}

using Copy = void (*)(std::byte* to, const std::byte* from, size_t bytes);

void plain_copy(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

/// Copies past the caches. `bytes`: a multiple of 64; the addresses are aligned to 64 bytes.
void streaming_copy(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__x86_64__)
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* target = reinterpret_cast<__m128i*>(to);
  for (size_t i = 0; i < bytes / sizeof(__m128i); i += 4) {
    const __m128i a = _mm_load_si128(source + i), b = _mm_load_si128(source + i + 1);
    const __m128i c = _mm_load_si128(source + i + 2), d = _mm_load_si128(source + i + 3);
    _mm_stream_si128(target + i, a);
    _mm_stream_si128(target + i + 1, b);
    _mm_stream_si128(target + i + 2, c);
    _mm_stream_si128(target + i + 3, d);
  }
  _mm_sfence();
#else
  plain_copy(to, from, bytes);
#endif
}

/// Memory whose shares, one of each thread, are copied from their first to their second half.
class CopyBenchmark {
 public:
  CopyBenchmark(int64_t bytes, int threads)
      : threads_(threads),
        half_(static_cast<size_t>(bytes / threads / 2 / kLine * kLine)),
        memory_(static_cast<int64_t>(half_) * 2 * threads) {
    // Each thread writes its share first, so that the share lies on the NUMA node of its core.
    std::vector<std::jthread> writers;
    for (int t = 0; t < threads; ++t) {
      writers.emplace_back([this, t] { std::memset(share(t), 1, 2 * half_); });
    }
  }

  /// Returns the bytes that are read and written per ns.
  double bytes_per_ns(Copy copy) const {
    const size_t window = std::min(half_, kMaxWindow);
    std::vector<size_t> offsets(static_cast<size_t>(threads_), 0);
    const Work work = [&](int t, int64_t passes) {
      size_t& offset = offsets[static_cast<size_t>(t)];
      for (; passes > 0; --passes) {
        copy(share(t) + half_ + offset, share(t) + offset, window);
        offset += window;
        if (offset + window > half_) offset = 0;
      }
    };
    return best_passes_per_ns(threads_, work) * 2 * static_cast<double>(window);
  }

 private:
  static constexpr int64_t kLine = 64;
  static constexpr size_t kMaxWindow = size_t{4} << 20;  ///< bytes that a pass copies
  std::byte* share(int thread) const {
    return memory_.data() + static_cast<size_t>(thread) * 2 * half_;
  }

  int threads_;
  size_t half_;  ///< bytes of half a share
  Arena memory_;
};

/// Number of CPUs that this process may use.
int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

/// Bytes of a copy that stays in the level of the caches of `cpu` on `threads` threads, or, in
/// "memory", leaves them. Nullopt if the CPU has no such level.
std::optional<int64_t> copied_bytes(const TargetDescription& cpu, std::string_view level,
                                    int threads) {
  if (level == "l1") return threads * cpu.l1_bytes / 2;
  if (level == "l2") return threads * cpu.l2_bytes / 2;
  if (level == "l3") {
    if (cpu.l3_bytes <= cpu.l2_bytes) return std::nullopt;
    return std::max(cpu.l3_bytes / 2, threads * cpu.l2_bytes);
  }
  constexpr int64_t kLeast = int64_t{64} << 20, kMost = int64_t{512} << 20;
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::min(std::clamp(4 * cpu.l3_bytes, kLeast, kMost), physical / 8);
}

double gbs_of(int64_t bytes, int threads, bool streaming) {
  const CopyBenchmark benchmark(bytes, threads);
  const double plain = benchmark.bytes_per_ns(plain_copy);
  return streaming ? std::max(plain, benchmark.bytes_per_ns(streaming_copy)) : plain;
}

}  // namespace

double rounded_rate(double rate) {
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 1);
  // Divides by the inverse of a unit below 1, which is exact: 0.57, not 0.57000000000000006.
  return unit < 1 ? std::round(rate / unit) / std::round(1 / unit) : std::round(rate / unit) * unit;
}

TargetDescription measure_host() {
  const int cores = usable_cores();
  TargetDescription cpu = describe_host(cores);
  cpu.measured = true;
  const auto rates = [cores](const auto& rate) -> CoreRates {
    const double one = rate(1);
    return {rounded_rate(one), rounded_rate(cores > 1 ? rate(cores) : one)};
  };
  for (const PeakLoop& loop : peak_loops()) {
    cpu.gops[loop.name] = rates([&](int threads) { return gops_of(loop, threads); });
  }
  for (const char* level : {"l1", "l2", "l3", "memory"}) {
    if (!copied_bytes(cpu, level, 1)) {
      cpu.gbs.erase(level);
      continue;
    }
    cpu.gbs[level] = rates([&](int threads) {
      return gbs_of(*copied_bytes(cpu, level, threads), threads,
                    level == std::string_view("memory"));
    });
  }
  return cpu;
}

double copy_bandwidth(double bytes, int threads) {
  const TargetDescription cpu = describe_host(threads);
  const std::string_view level = cpu.level_of(bytes);
  return 1e9 * gbs_of(copied_bytes(cpu, level, threads).value(), threads, level == "memory");
}

}  // namespace fluid
