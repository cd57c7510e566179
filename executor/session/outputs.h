#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/device/step_report.h"
#include "ir/tensor.h"

namespace fluid {

class PreparedStep;
class StepsInFlight;

/// One fetched output.
struct OutputView {
  std::string name;
  Tensor value;  ///< view of the output slot; for a metric: sum / weight
  bool metric = false;
  /// For a metric: its summands, to be added over the steps of an epoch. Otherwise nan.
  double sum = std::numeric_limits<double>::quiet_NaN();
  double weight = std::numeric_limits<double>::quiet_NaN();
};

/// The outputs of one step, and the training state after it. On a GPU the step runs asynchronously:
/// reading a value waits for the step and throws the step's error. An output larger than 1 MiB is
/// copied to the host when it is read.
///
/// Outputs are readable until the second step after this one starts, whatever its mode, even if a
/// step of another size is prepared meanwhile. Reading them later throws UserError. Tensors are
/// views with that lifetime; `.copy()` owns its data. The executor must outlive this object.
class OutputViews {
 public:
  /// Refers to the outputs of step `number`, which lie in output slot `slot`.
  OutputViews(StepsInFlight& steps, const PreparedStep& step, size_t slot, uint64_t number)
      : steps_(&steps), step_(&step), slot_(slot), number_(number) {}

  /// Throws UserError with a near miss when there is no such output.
  const Tensor& operator[](std::string_view name) const { return find(name).value; }
  const OutputView& find(std::string_view name) const;
  bool has(std::string_view name) const;
  auto begin() const { return all().begin(); }
  auto end() const { return all().end(); }
  size_t size() const;
  /// Calls `see` for each metric and each output of one element. Does not fetch larger outputs.
  template <class F>
  void each_scalar(F see) const {
    for (const OutputView& o : arrived()) {
      if (o.metric || o.value.numel() == 1) see(o);
    }
  }
  /// Waits for the step. Throws the step's error.
  void wait() const { arrived(); }

  /// Loss scaling state after the step; nullopt when the loss is not scaled.
  std::optional<LossScaling> loss_scaling() const;
  /// Learning rate of the step's update; nullopt when the recipe has no schedule.
  std::optional<double> learning_rate() const;

 private:
  const std::vector<OutputView>& arrived() const;
  const std::vector<OutputView>& all() const;

  StepsInFlight* steps_;
  const PreparedStep* step_;
  size_t slot_;
  uint64_t number_;
};

}  // namespace fluid
