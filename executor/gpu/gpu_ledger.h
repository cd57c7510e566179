#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "executor/gpu/gpu.h"

namespace fluid {

/// Who takes a GPU's memory without asking for it by address: the driver, libraries, code, graphs.
/// It is what was free before a step of setting up and is not after it, so that what other
/// processes take meanwhile counts, too. For one thread at a time.
class GpuLedger {
 public:
  /// What is taken now is the context's, or of other processes.
  explicit GpuLedger(const Gpu& gpu)
      : gpu_(gpu), total_(gpu.memory_info().second), free_at_first_(gpu.memory_info().first) {}

  GpuLedger(const GpuLedger&) = delete;

  /// Runs a step of setting up; what it takes, less what it gives back, is the owner's. Memory that
  /// it asks for by address is not counted.
  template <class Step>
  auto measured(const char* owner, Step&& step) const {
    const int64_t before = hidden();
    if constexpr (std::is_void_v<decltype(step())>) {
      step();
      taken_[owner] += hidden() - before;
    } else {
      auto result = step();
      taken_[owner] += hidden() - before;
      return result;
    }
  }

  /// All of them, with bytes, those first that take most; and what is left to explain.
  std::vector<std::pair<std::string, int64_t>> owners() const;

 private:
  /// Taken since the beginning, but not by address.
  int64_t hidden() const;

  const Gpu& gpu_;
  int64_t total_, free_at_first_;
  mutable std::map<std::string, int64_t> taken_;
};

}  // namespace fluid
