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

constexpr int64_t kMinRoundNs = 500'000;  // the rates of shorter rounds are ignored
// A measurement ends when the rates of kAgreeingRounds rounds are at least kAgreement times the
// best rate, or when its time budget is spent.
constexpr int kAgreeingRounds = 6;
constexpr double kAgreement = 0.98;
constexpr int64_t kBudgetNs = 1'400'000'000;    // total time budget of measure_host()
constexpr int64_t kCopyBudgetNs = 200'000'000;  // time budget of copy_bandwidth()
constexpr int64_t kIterations = 1024;           // iterations of a PeakLoop in a pass

/// Runs `passes` passes of a benchmark on the calling thread. `thread`: index of this thread.
using Work = std::function<void(int thread, int64_t passes)>;

/// Pins the calling thread to the `thread`-th CPU that the process may use. On a busy machine, the
/// scheduler might otherwise run several of the measuring threads on one CPU.
void pin_thread(int thread) {
  cpu_set_t usable, own;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  CPU_ZERO(&own);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || thread-- > 0) continue;
    CPU_SET(cpu, &own);
    sched_setaffinity(0, sizeof own, &own);
    return;
  }
}

/// Runs rounds of equal work on several threads, and measures the rate of each round.
class Rounds {
 public:
  Rounds(int threads, int64_t budget_ns, const Work& work)
      : work_(work),
        budget_ns_(budget_ns),
        spans_(static_cast<size_t>(threads)),
        next_(threads, EndRound{this}) {}

  /// Returns the best rate of a round, in passes per ns of all threads together.
  double best_passes_per_ns() {
    std::vector<std::jthread> threads;
    try {
      while (threads.size() < spans_.size()) {
        threads.emplace_back([this, thread = static_cast<int>(threads.size())] { run(thread); });
      }
    } catch (...) {
      stop_ = true;
      for (size_t i = threads.size(); i < spans_.size(); ++i) next_.arrive_and_drop();
      throw;
    }
    threads.clear();  // joins the threads
    return best();
  }

 private:
  struct EndRound {
    Rounds* rounds;
    void operator()() noexcept { rounds->end_round(); }
  };

  void run(int thread) {
    if (spans_.size() > 1) pin_thread(thread);
    TimeSpan& span = spans_[static_cast<size_t>(thread)];
    while (next_.arrive_and_wait(), !stop_) {
      span.begin = clock_ns();
      work_(thread, passes_);
      span.end = clock_ns();
    }
  }

  /// Completion function of the barrier between rounds. All threads wait until it returns.
  void end_round() {
    const int64_t begin = std::ranges::min_element(spans_, {}, &TimeSpan::begin)->begin;
    const int64_t end = std::ranges::max_element(spans_, {}, &TimeSpan::end)->end;
    if (stop_ || end == 0) return;  // no round has run, or a thread did not start
    if (first_begin_ == 0) first_begin_ = begin;
    const bool is_last = end - first_begin_ > budget_ns_;
    const int64_t ns = std::max<int64_t>(end - begin, 1);
    const auto passes = static_cast<double>(passes_ * std::ssize(spans_));
    if (ns >= kMinRoundNs || is_last) rates_.push_back(passes / static_cast<double>(ns));
    if (ns < kMinRoundNs) passes_ *= 2;
    const auto agrees = [&](double rate) { return rate >= kAgreement * best(); };
    stop_ = is_last || std::ranges::count_if(rates_, agrees) >= kAgreeingRounds;
  }

  double best() const { return std::ranges::max(rates_); }

  const Work& work_;
  int64_t budget_ns_;
  std::vector<TimeSpan> spans_;  ///< begin and end of each thread's work in the last round
  int64_t passes_ = 1, first_begin_ = 0;
  /// Rates in passes per ns of the rounds of at least kMinRoundNs, and of the last round.
  std::vector<double> rates_;
  bool stop_ = false;
  std::barrier<EndRound> next_;
};

/// Returns the rate of `loop` on `threads` threads, in operations per ns.
double gops_of(const PeakLoop& loop, int threads, int64_t budget_ns) {
  const Work work = [&](int, int64_t passes) { loop.run(passes * kIterations); };
  return Rounds(threads, budget_ns, work).best_passes_per_ns() *
         static_cast<double>(loop.ops * kIterations);
}

using Copy = void (*)(std::byte* to, const std::byte* from, size_t bytes);

void plain_copy(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

/// Copies with non-temporal stores. `bytes`: a multiple of 64; addresses are aligned to 64 bytes.
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

/// Measures copy bandwidth. Each thread copies the first half of its own memory region to the
/// second half.
class CopyBenchmark {
 public:
  CopyBenchmark(int64_t bytes, int threads)
      : threads_(threads),
        half_(static_cast<size_t>(bytes / threads / 2 / kLine * kLine)),
        memory_(static_cast<int64_t>(half_) * 2 * threads) {
    // Each thread first writes its own region, so that the pages are allocated on its NUMA node.
    std::vector<std::jthread> writers;
    for (int t = 0; t < threads; ++t) {
      writers.emplace_back([this, t] { std::memset(region(t), 1, 2 * half_); });
    }
  }

  /// Measures the memory bandwidth, reads plus writes, in bytes per ns.
  double bytes_per_ns(Copy copy, int64_t budget_ns) const {
    const size_t window = std::min(half_, kMaxWindow);
    std::vector<size_t> offsets(static_cast<size_t>(threads_), 0);
    const Work work = [&](int t, int64_t passes) {
      size_t& offset = offsets[static_cast<size_t>(t)];
      for (; passes > 0; --passes) {
        copy(region(t) + half_ + offset, region(t) + offset, window);
        offset += window;
        if (offset + window > half_) offset = 0;
      }
    };
    return Rounds(threads_, budget_ns, work).best_passes_per_ns() * 2 * static_cast<double>(window);
  }

 private:
  static constexpr int64_t kLine = 64;
  static constexpr size_t kMaxWindow = size_t{4} << 20;  ///< maximum bytes that a pass copies
  std::byte* region(int thread) const {
    return memory_.data() + static_cast<size_t>(thread) * 2 * half_;
  }

  int threads_;
  size_t half_;  ///< bytes of half a thread's region
  Arena memory_;
};

/// Returns the total bytes that `threads` threads copy to measure `level`. The bytes fit in this
/// cache level or, for "memory", exceed all caches. Returns nullopt if the CPU has no such level.
std::optional<int64_t> copied_bytes(const TargetDescription& cpu, std::string_view level,
                                    int threads) {
  if (level == "l1") return threads * cpu.l1_bytes / 2;
  if (level == "l2") return threads * cpu.l2_bytes / 2;
  if (level == "l3") {
    if (cpu.l3_bytes <= cpu.l2_bytes) return std::nullopt;
    return std::max(cpu.l3_bytes / 2, threads * cpu.l2_bytes);
  }
  constexpr int64_t kMinBytes = int64_t{64} << 20, kMaxBytes = int64_t{512} << 20;
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::min(std::clamp(4 * cpu.l3_bytes, kMinBytes, kMaxBytes), physical / 8);
}

/// Returns the copy bandwidth in bytes per ns. In main memory (`in_memory`), returns the higher one
/// of plain and non-temporal stores.
double gbs_of(int64_t bytes, int threads, bool in_memory, int64_t budget_ns) {
  const CopyBenchmark benchmark(bytes, threads);
  if (!in_memory) return benchmark.bytes_per_ns(plain_copy, budget_ns);
  return std::max(benchmark.bytes_per_ns(plain_copy, budget_ns / 2),
                  benchmark.bytes_per_ns(streaming_copy, budget_ns / 2));
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

double rounded_rate(double rate) {
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 1);
  // If unit < 1, 1 / unit is an integer: 57 / 100 is 0.57, but 57 * 0.01 is 0.57000000000000006.
  return unit < 1 ? std::round(rate / unit) / std::round(1 / unit) : std::round(rate / unit) * unit;
}

TargetDescription measure_host() {
  const int cores = usable_cores();
  TargetDescription cpu = describe_host(cores);
  cpu.measured = true;
  std::erase_if(cpu.gbs, [&](const auto& level) { return !copied_bytes(cpu, level.first, 1); });
  const int64_t budget_ns =
      kBudgetNs / (2 * static_cast<int64_t>(peak_loops().size() + cpu.gbs.size()));
  const auto rates = [cores](const auto& rate) -> CoreRates {
    const double one = rate(1), all = cores > 1 ? std::max(one, rate(cores)) : one;
    // Takes the maximum, because one core alone is at least as fast as each of several busy cores.
    // Other programs may have slowed the measurement of one core.
    return {rounded_rate(std::max(one, all / cores)), rounded_rate(all)};
  };
  for (const PeakLoop& loop : peak_loops()) {
    cpu.gops[loop.name] = rates([&](int threads) { return gops_of(loop, threads, budget_ns); });
  }
  for (auto& [level, of_level] : cpu.gbs) {
    of_level = rates([&, &name = level](int threads) {
      return gbs_of(*copied_bytes(cpu, name, threads), threads, name == "memory", budget_ns);
    });
  }
  return cpu;
}

double copy_bandwidth(double bytes, int threads) {
  const TargetDescription cpu = describe_host(threads);
  const std::string_view level = cpu.memory_level(bytes);
  const int64_t copied = copied_bytes(cpu, level, threads).value();
  return 1e9 * gbs_of(copied, threads, level == "memory", kCopyBudgetNs);
}

}  // namespace fluid
