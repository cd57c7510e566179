#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace fluid {

/// One fetched output.
struct Output {
  std::string name;
  Tensor value;  ///< a view of the output slot; of a metric: sum / weight
  bool metric = false;
  /// Of a metric: add these over steps for an epoch's figure. Of others nan.
  double sum = std::numeric_limits<double>::quiet_NaN();
  double weight = std::numeric_limits<double>::quiet_NaN();
};

/// The outputs of one step. The tensors are views: valid until the second step after this one, of
/// any mode, also when a step of another size is prepared meanwhile. `.copy()` owns.
class Outputs {
 public:
  explicit Outputs(const std::vector<Output>* outputs) : outputs_(outputs) {}

  /// Throws UserError with a near miss when there is no such output.
  const Tensor& operator[](std::string_view name) const { return find(name).value; }
  const Output& find(std::string_view name) const;
  bool has(std::string_view name) const;
  auto begin() const { return outputs_->begin(); }
  auto end() const { return outputs_->end(); }
  size_t size() const { return outputs_->size(); }

 private:
  const std::vector<Output>* outputs_;
};

}  // namespace fluid
