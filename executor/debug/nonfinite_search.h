#pragma once

#include <memory>
#include <string>

#include "executor/session/session.h"

namespace fluid {

/// Finds the first op that produced a non-finite value in a training step. Reruns the step with the
/// same random state and inspects the results of every kernel. Requires Options::check_finite.
class NonfiniteSearch {
 public:
  explicit NonfiniteSearch(Session& session) : session_(session) {}

  /// Saves counters, loss scale and other control variables for a rerun. Call before each step.
  void save_control_variables();

  /// Describes the first non-finite value of the last training step: op, source line, element.
  /// Returns "" if all values were finite. Leaves all variables unchanged. Throws the errors of
  /// Session::rerun_observed().
  std::string describe_first_nonfinite(const PreparedStep& step, const Batch& batch);

 private:
  std::string describe_nonfinite_input(const PreparedStep& step, const Batch& batch);
  std::string describe_nonfinite_kernel(const PreparedStep& step, const Batch& batch);
  std::string describe_nonfinite_body_op(const PreparedStep& step, const Batch& batch);
  void rerun_observed(const PreparedStep& step, size_t last_micro_batch, const Batch& batch,
                      const StepsInFlight::RerunObserver& observer);
  Device& host_device();

  Session& session_;
  VariableValues::ControlValues controls_before_;
  std::unique_ptr<Device> host_;  ///< CPU device that recomputes ops; created on first use
};

}  // namespace fluid
