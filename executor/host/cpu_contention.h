#pragma once

#include <atomic>
#include <cstdint>

namespace fluid {

/// Detects whether other programs use the CPUs on which the threads of this process run. In this
/// case the OS preempts the threads often. Thread-safe.
class CpuContention {
 public:
  /// `now`: monotonic time in ns. `preemptions`: number of involuntary context switches of the
  /// process so far. Returns whether there is contention. Contention begins after 2 windows (200 ms
  /// each) with many preemptions, so that a single short burst is ignored. It ends after 10 windows
  /// with few preemptions. This number doubles each time contention begins again, up to 300.
  bool update(int64_t now, int64_t preemptions);
  /// Whether the current measurement window has ended. Until then, update() ignores its arguments.
  bool is_due(int64_t now) const { return now - window_begin_.load() >= kWindowNs; }
  bool is_contended() const { return is_contended_.load(std::memory_order_relaxed); }

 private:
  static constexpr int64_t kWindowNs = 200'000'000;  // length of a window
  // Threshold in preemptions per second. A virtual machine has about 50 without contention, and
  // over 200 with contention.
  static constexpr double kPreemptionsPerSecond = 120;
  static constexpr int kBusyWindows = 2, kQuietWindows = 10, kMaxQuietWindows = 300;

  std::atomic<bool> is_contended_ = false;
  std::atomic<int> streak_ = 0;  ///< number of consecutive windows that contradict is_contended_
  /// Number of consecutive quiet windows after which contention ends. Doubles each time contention
  /// begins, so the first contention ends after kQuietWindows.
  std::atomic<int> quiet_windows_ = kQuietWindows / 2;
  std::atomic<int64_t> window_begin_ = 0;
  std::atomic<int64_t> preemptions_ = 0;
};

}  // namespace fluid
