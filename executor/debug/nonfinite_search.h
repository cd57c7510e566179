#pragma once

#include <memory>
#include <string>

#include "executor/session/session.h"

namespace fluid {

/// Finds the origin of non-finite values in a training step. Reruns the step from the same counters
/// and inspects every kernel. Needs Options::check_finite.
class NonfiniteSearch {
 public:
  explicit NonfiniteSearch(Session& session) : session_(session) {}

  /// Saves the control variables. Call it before each training step.
  void before_step();

  /// Describes the first non-finite value of the last training step: op, source line, element. ""
  /// when there is none. Changes no variable; for failures see Session::rerun_watched().
  std::string find(const PreparedStep& step, const Batch& batch);

 private:
  std::string bad_source(const PreparedStep& step, const Batch& batch);
  std::string bad_kernel(const PreparedStep& step, const Batch& batch);
  std::string bad_within(const PreparedStep& step, const Batch& batch);
  void rerun_watched(const PreparedStep& step, size_t last, const Batch& batch,
                     const StepsInFlight::See& see);
  Device& host();

  Session& session_;
  VariableValues::Controls before_;
  std::unique_ptr<Device> host_;  ///< created on first use
};

}  // namespace fluid
