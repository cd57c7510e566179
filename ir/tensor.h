#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/error.h"
#include "ir/type.h"

namespace fluid {

/// Whether T is the C++ type of `dtype`'s elements in host memory. f16 and bf16 elements are bit
/// patterns of type uint16_t.
template <class T>
constexpr bool holds(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::is_same_v<T, double>;
    case DType::f32:
      return std::is_same_v<T, float>;
    case DType::f16:
    case DType::bf16:
      return std::is_same_v<T, uint16_t>;
    case DType::i64:
      return std::is_same_v<T, int64_t>;
    case DType::i32:
      return std::is_same_v<T, int32_t>;
    case DType::u8:
      return std::is_same_v<T, uint8_t>;
    case DType::i8:
      return std::is_same_v<T, int8_t>;
    case DType::boolean:
      return std::is_same_v<T, bool>;
  }
  return false;
}

/// Returns the dtype of T. Does not compile for uint16_t, the type of both f16 and bf16 elements.
template <class T>
consteval DType dtype_of() {
  for (DType d :
       {DType::f64, DType::f32, DType::i64, DType::i32, DType::u8, DType::i8, DType::boolean}) {
    if (holds<T>(d)) return d;
  }
  throw "no dtype holds T";  // a compile-time error: the function is consteval
}

/// A row-major tensor in host memory. Owns its memory or is a view.
class Tensor {
 public:
  Tensor() = default;
  /// Allocates zeroed memory, 64-byte aligned. Throws UserError when the size overflows.
  Tensor(DType dtype, std::vector<int64_t> shape);
  /// Returns a view of `data`. Without `owner`, the caller must keep `data` alive.
  static Tensor view(DType dtype, std::vector<int64_t> shape, void* data,
                     std::shared_ptr<void> owner = nullptr);
  /// Returns a tensor with a copy of `values`. Throws UserError when values.size() is not the
  /// number of elements of `shape`.
  template <class T>
  static Tensor of(std::vector<int64_t> shape, std::span<const T> values);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t numel() const { return numel_; }
  int64_t bytes() const { return numel() * size_of(dtype_); }
  void* data() { return data_; }
  const void* data() const { return data_; }
  template <class T>
  std::span<T> as();  ///< throws UserError when T does not match dtype()
  template <class T>
  std::span<const T> as() const;
  double at(int64_t i) const;  ///< returns element i in row-major order, as a double
  /// Returns element i of an integer or bool tensor exactly; at() may round a large i64. Throws
  /// UserError for a float tensor.
  int64_t integer(int64_t i) const;
  double item() const;  ///< returns the only element; throws UserError if numel() is not 1
  Tensor copy() const;  ///< returns a copy that owns its memory
  Tensor cast(DType dtype) const;  ///< returns a converted copy; f16 and bf16 round to nearest even
  std::string str() const;         ///< dtype and shape: "f32[2, 3]"

 private:
  void require(bool condition, const char* what) const;  ///< throws UserError unless `condition`

  DType dtype_ = DType::f32;
  std::vector<int64_t> shape_ = {0};
  int64_t numel_ = 0;
  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
};

template <class T>
Tensor Tensor::of(std::vector<int64_t> shape, std::span<const T> values) {
  Tensor t(dtype_of<T>(), std::move(shape));
  t.require(t.numel() == static_cast<int64_t>(values.size()), "given another number of values");
  if (!values.empty()) std::memcpy(t.data(), values.data(), values.size_bytes());
  return t;
}

template <class T>
std::span<T> Tensor::as() {
  require(holds<T>(dtype_), "read as another dtype");
  return {static_cast<T*>(data_), static_cast<size_t>(numel_)};
}

template <class T>
std::span<const T> Tensor::as() const {
  require(holds<T>(dtype_), "read as another dtype");
  return {static_cast<const T*>(data_), static_cast<size_t>(numel_)};
}

/// Convert between f32 and `dtype` (f16 or bf16), rounding to nearest even.
float half_to_float(uint16_t bits, DType dtype);
uint16_t float_to_half(float value, DType dtype);

/// A batch of named input tensors, each with `size` samples along dimension 0.
struct Batch {
  int64_t size = 0;
  std::vector<std::pair<std::string, Tensor>> columns;
  /// Batches with equal nonzero ids have equal contents. A buffer that holds a batch with the same
  /// id need not be refilled.
  uint64_t id = 0;
  /// For a micro-batch or a shard of a rank: `first` is the index of the first sample in the global
  /// batch; `global_batch_size` is its size. For a global batch both are 0.
  int64_t first = 0;
  int64_t global_batch_size = 0;
  int64_t global_size() const { return global_batch_size == 0 ? size : global_batch_size; }
  const Tensor* find(const std::string& name) const;
};

}  // namespace fluid
