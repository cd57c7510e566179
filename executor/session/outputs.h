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
struct Output {
  std::string name;
  Tensor value;  ///< a view of the output slot; of a metric: sum / weight
  bool metric = false;
  /// Of a metric: add these over steps for an epoch's figure. Of others nan.
  double sum = std::numeric_limits<double>::quiet_NaN();
  double weight = std::numeric_limits<double>::quiet_NaN();
};

/// The outputs of one step, and how training stands after it. On a GPU the step may still run: who
/// first asks for a value waits for it, and is thrown what the step was refused for; of outputs
/// beyond 1 MiB only those come to the host that are asked for.
///
/// They can be asked for until the second step after this one begins, of any mode, also when a step
/// of another size is prepared meanwhile; a UserError says when it is too late. The tensors are
/// views, valid as long. `.copy()` owns. Not to be used once the executor is gone.
class Outputs {
 public:
  /// The outputs of step `number`.
  Outputs(StepsInFlight& steps, const PreparedStep& step, size_t slot, uint64_t number)
      : steps_(&steps), step_(&step), slot_(slot), number_(number) {}

  /// Throws UserError with a near miss when there is no such output.
  const Tensor& operator[](std::string_view name) const { return find(name).value; }
  const Output& find(std::string_view name) const;
  bool has(std::string_view name) const;
  auto begin() const { return all().begin(); }
  auto end() const { return all().end(); }
  size_t size() const;
  /// Calls `see` for each metric and each output of one element; what is larger stays where it is.
  template <class F>
  void each_figure(F see) const {
    for (const Output& o : arrived()) {
      if (o.metric || o.value.numel() == 1) see(o);
    }
  }
  /// Returns when the step is done. Throws what it was refused for.
  void wait() const { arrived(); }

  /// After the step; nothing when the loss is not scaled.
  std::optional<LossScaling> loss_scaling() const;
  /// Of the step's update, when the recipe has a schedule.
  std::optional<double> learning_rate() const;

 private:
  const std::vector<Output>& arrived() const;
  const std::vector<Output>& all() const;

  StepsInFlight* steps_;
  const PreparedStep* step_;
  size_t slot_;
  uint64_t number_;
};

}  // namespace fluid
