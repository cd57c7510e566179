#include "executor/host/cpu_contention.h"

#include <algorithm>

namespace fluid {

bool CpuContention::update(int64_t now, int64_t preemptions) {
  int64_t begin = window_begin_.load();
  if (!is_due(now) || !window_begin_.compare_exchange_strong(begin, now)) return is_contended();
  const int64_t new_preemptions = preemptions - preemptions_.exchange(preemptions);
  if (begin == 0) return false;  // the first window begins now
  const double seconds = static_cast<double>(now - begin) / 1e9;
  const bool many = static_cast<double>(new_preemptions) > kPreemptionsPerSecond * seconds;
  const bool was_contended = is_contended();
  streak_ = many == was_contended ? 0 : streak_ + 1;
  if (streak_ < (was_contended ? quiet_windows_.load() : kBusyWindows)) return was_contended;
  if (many) quiet_windows_ = std::min(2 * quiet_windows_, kMaxQuietWindows);
  streak_ = 0;
  is_contended_ = many;
  return many;
}

}  // namespace fluid
