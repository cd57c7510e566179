#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/device/step_report.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

class PreparedStep;
class StepsInFlight;

/// An output of a step.
struct OutputView {
  std::string name;
  Tensor value;  ///< view into the output slot; for a metric, its value as an f64 scalar
  const ir::Op* metric = nullptr;  ///< the op if the output is a metric, such as accuracy
  Tensor statistics = {};  ///< view of the metric's statistics in the output slot; see Metric
};

/// The outputs of one step, and the training state after the step. On a GPU, steps run
/// asynchronously: reading a value waits for the step and throws the step's error. Outputs larger
/// than 1 MiB are copied to the host when they are read.
///
/// Outputs of step n stay readable until step n + 2 starts, even if the steps have different modes.
/// Reading an output later throws UserError. Preparing a step of another size keeps the outputs
/// readable. Tensors are views with the same lifetime; `.copy()` owns its data. The executor must
/// outlive this object.
class OutputViews {
 public:
  /// Gives access to the outputs of step `step_number`, which uses output slot `slot`.
  OutputViews(StepsInFlight& steps, const PreparedStep& step, size_t slot, uint64_t step_number)
      : steps_(&steps), step_(&step), slot_(slot), step_number_(step_number) {}

  /// Throws UserError if there is no such output. The message suggests the most similar name.
  const Tensor& operator[](std::string_view name) const { return find(name).value; }
  const OutputView& find(std::string_view name) const;
  bool contains(std::string_view name) const;
  auto begin() const { return fetched_outputs().begin(); }
  auto end() const { return fetched_outputs().end(); }
  size_t size() const;
  /// Calls `visit` for each metric and each one-element output. Does not copy larger outputs to
  /// the host.
  template <class F>
  void for_each_scalar(F visit) const {
    for (const OutputView& o : completed_outputs()) {
      if (o.metric || o.value.numel() == 1) visit(o);
    }
  }
  /// Waits until the step is complete. Throws the error of the step if it failed.
  void wait() const { completed_outputs(); }

  /// Loss scaling state after the step; nullopt when the loss is not scaled.
  std::optional<LossScaling> loss_scaling() const;
  /// Learning rate of the step; nullopt when the recipe has no schedule.
  std::optional<double> learning_rate() const;

 private:
  const std::vector<OutputView>& completed_outputs() const;
  const std::vector<OutputView>& fetched_outputs() const;

  StepsInFlight* steps_;
  const PreparedStep* step_;
  size_t slot_;
  uint64_t step_number_;
};

}  // namespace fluid
