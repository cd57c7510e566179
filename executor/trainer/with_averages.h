#pragma once

#include "executor/executor.h"

namespace fluid {

/// Returns f(). If `averages` is set, calls f() between use_averages(true) and use_averages(false).
template <class F>
auto with_averages(Executor& executor, bool averages, F f) {
  if (!averages) return f();
  executor.use_averages(true);
  try {
    auto result = f();
    executor.use_averages(false);
    return result;
  } catch (...) {
    executor.use_averages(false);
    throw;
  }
}

}  // namespace fluid
