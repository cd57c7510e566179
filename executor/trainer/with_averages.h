#pragma once

#include "executor/executor.h"

namespace fluid {

/// Returns f(). With `averages`, f() runs with the averages of the parameters in use.
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
