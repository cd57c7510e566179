#include "frontend/readers/dataset.h"

namespace fluid {

const Tensor* Dataset::find(std::string_view name) const {
  for (const auto& [column, tensor] : columns) {
    if (column == name) return &tensor;
  }
  return nullptr;
}

int64_t Dataset::bytes() const {
  int64_t sum = 0;
  for (const auto& [name, tensor] : columns) sum += tensor.bytes();
  return sum;
}

Dataset Dataset::first(int64_t n) const {
  if (n >= samples()) return *this;
  Dataset part;
  for (const auto& [name, tensor] : columns) {
    std::vector<int64_t> shape = tensor.shape();
    shape[0] = n;
    part.columns.emplace_back(
        name, Tensor::view(tensor.dtype(), shape, const_cast<void*>(tensor.data())).copy());
  }
  return part;
}

}  // namespace fluid
