#include "frontend/readers/dataset.h"

#include <algorithm>

namespace fluid {

const Tensor* Dataset::find(std::string_view name) const {
  for (const auto& [column, tensor] : columns) {
    if (column == name) return &tensor;
  }
  return nullptr;
}

Dataset Dataset::first(int64_t n) const {
  Dataset part;
  for (const auto& [name, tensor] : columns) {
    std::vector<int64_t> shape = tensor.shape();
    shape[0] = std::min(shape[0], n);
    const auto owner = std::make_shared<Tensor>(tensor);
    part.columns.emplace_back(name, Tensor::view(tensor.dtype(), shape, owner->data(), owner));
  }
  return part;
}

}  // namespace fluid
