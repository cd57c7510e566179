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
  /// each) with many preemptions, so that a single short burst is ignored. Contention ends after 10
  /// windows with few preemptions. The 10 is doubled each time contention begins again, up to 300.
  bool update(int64_t now, int64_t preemptions);
  /// Whether the current window has ended, so that update() would use its arguments.
  bool is_due(int64_t now) const { return now - window_begin_.load() >= kWindow; }
  bool present() const { return present_.load(std::memory_order_relaxed); }

 private:
  static constexpr int64_t kWindow = 200'000'000;  // in ns
  // Threshold. Measured: about 50 on a quiet virtual machine, more than 200 beside a busy program.
  static constexpr double kPreemptionsPerSecond = 120;
  static constexpr int kBusyWindows = 2, kQuietWindows = 10, kMaxQuietWindows = 300;

  std::atomic<bool> present_ = false;
  std::atomic<int> streak_ = 0;  ///< consecutive windows that contradict present_
  std::atomic<int> quiet_windows_ = kQuietWindows / 2;  ///< windows after which contention ends
  std::atomic<int64_t> window_begin_ = 0;
  std::atomic<int64_t> preemptions_ = 0;
};

}  // namespace fluid
