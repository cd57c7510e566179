#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/type.h"

namespace fluid {

/// A tensor in host memory, plain row-major: owning, or a view of somebody's memory.
class Tensor {
 public:
  Tensor() = default;
  /// Owns zeroed memory, 64-byte aligned. Throws UserError when the size overflows.
  Tensor(DType dtype, std::vector<int64_t> shape);
  /// A view: the caller keeps `data` alive (or gives an owner to share).
  static Tensor view(DType dtype, std::vector<int64_t> shape, void* data,
                     std::shared_ptr<void> owner = nullptr);
  template <class T>
  static Tensor of(std::vector<int64_t> shape, std::span<const T> values);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t numel() const;
  int64_t bytes() const { return numel() * size_of(dtype_); }
  void* data() { return data_; }
  const void* data() const { return data_; }
  template <class T>
  std::span<T> as();         ///< T must match dtype(); throws UserError otherwise
  template <class T>
  std::span<const T> as() const;
  double at(int64_t i) const;          ///< element i in row-major order, as a double
  double item() const;                 ///< the single element; UserError when there are several
  Tensor copy() const;                 ///< owns its memory
  Tensor cast(DType dtype) const;      ///< converted copy; round to nearest even for halves
  std::string str() const;             ///< "f32[2, 3]"

 private:
  DType dtype_ = DType::f32;
  std::vector<int64_t> shape_ = {0};
  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
};

/// The f16 and bf16 conversions used everywhere on the host: round to nearest even.
float half_to_float(uint16_t bits, DType dtype);
uint16_t float_to_half(float value, DType dtype);

/// Named tensors that go into a program together: each has `size` samples in its first dimension.
struct Batch {
  int64_t size = 0;
  std::vector<std::pair<std::string, Tensor>> columns;
  /// Batches of equal non-zero id hold the same bytes, so a feed slot that holds it is not recopied.
  uint64_t id = 0;
  const Tensor* find(const std::string& name) const;
};

}  // namespace fluid
