#include "ir/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/bf16.h"

namespace fluid {
namespace {

constexpr size_t kAlignment = 64;

std::string text_of(DType dtype, const std::vector<int64_t>& shape) {
  std::string s = std::string(name_of(dtype)) + "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

/// Returns the number of elements. Throws UserError when the element count or the byte count
/// overflows int64_t.
int64_t checked_numel(DType dtype, const std::vector<int64_t>& shape) {
  int64_t n = 1;
  bool overflow = false, empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) throw UserError("tensor " + text_of(dtype, shape) + " has a negative extent");
    empty = empty || extent == 0;
    overflow = __builtin_mul_overflow(n, std::max<int64_t>(extent, 1), &n) || overflow;
  }
  if (empty) return 0;
  int64_t bytes = 0;
  if (overflow || __builtin_mul_overflow(n, size_of(dtype), &bytes)) {
    throw UserError("tensor " + text_of(dtype, shape) + " is larger than a 64-bit size");
  }
  return n;
}

/// Rounds to odd, so that a second rounding to f16 or bf16 equals one direct rounding to nearest
/// even. See Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008.
float to_float_odd(double value) {
  float f = static_cast<float>(value);
  if (!std::isfinite(value) || static_cast<double>(f) == value) return f;
  if (std::abs(static_cast<double>(f)) > std::abs(value)) f = std::nextafter(f, 0.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(f) | 1u);
}

/// Converts to an integer: rounds towards zero and saturates; NaN becomes 0.
template <class T>
T to_integer(double value) {
  if (std::isnan(value)) return 0;
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  if (value <= low) return std::numeric_limits<T>::min();
  if (value >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

int64_t integer_at(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::i64:
      return static_cast<const int64_t*>(data)[i];
    case DType::i32:
      return static_cast<const int32_t*>(data)[i];
    case DType::i8:
      return static_cast<const int8_t*>(data)[i];
    default:
      return static_cast<const uint8_t*>(data)[i];
  }
}

void store_integer(void* data, DType dtype, int64_t i, int64_t value) {
  switch (dtype) {
    case DType::i64:
      static_cast<int64_t*>(data)[i] = value;
      return;
    case DType::i32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
      return;
    case DType::boolean:
      static_cast<uint8_t*>(data)[i] = value != 0;
      return;
    default:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value);
      return;
  }
}

void store_double(void* data, DType dtype, int64_t i, double value) {
  switch (dtype) {
    case DType::f64:
      static_cast<double*>(data)[i] = value;
      return;
    case DType::f32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case DType::f16:
    case DType::bf16:
      static_cast<uint16_t*>(data)[i] = float_to_half(to_float_odd(value), dtype);
      return;
    case DType::i64:
      static_cast<int64_t*>(data)[i] = to_integer<int64_t>(value);
      return;
    case DType::i32:
      static_cast<int32_t*>(data)[i] = to_integer<int32_t>(value);
      return;
    case DType::u8:
      static_cast<uint8_t*>(data)[i] = to_integer<uint8_t>(value);
      return;
    case DType::i8:
      static_cast<int8_t*>(data)[i] = to_integer<int8_t>(value);
      return;
    case DType::boolean:
      static_cast<uint8_t*>(data)[i] = value != 0;
      return;
  }
}

}  // namespace

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), numel_(checked_numel(dtype, shape_)) {
  const size_t size = static_cast<size_t>(bytes());
  void* memory = std::aligned_alloc(kAlignment, (size / kAlignment + 1) * kAlignment);
  if (memory == nullptr) {
    throw UserError("no memory for tensor " + str() + " of " + std::to_string(size) + " bytes");
  }
  owner_ = std::shared_ptr<void>(memory, std::free);
  std::memset(memory, 0, size);
  data_ = memory;
}

Tensor Tensor::view(DType dtype, std::vector<int64_t> shape, void* data,
                    std::shared_ptr<void> owner) {
  Tensor t;
  t.numel_ = checked_numel(dtype, shape);
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.data_ = data;
  t.owner_ = std::move(owner);
  return t;
}

double Tensor::at(int64_t i) const {
  require(i >= 0 && i < numel_, "indexed out of range");
  switch (dtype_) {
    case DType::f64:
      return static_cast<const double*>(data_)[i];
    case DType::f32:
      return static_cast<const float*>(data_)[i];
    case DType::f16:
    case DType::bf16:
      return half_to_float(static_cast<const uint16_t*>(data_)[i], dtype_);
    default:
      return static_cast<double>(integer_at(data_, dtype_, i));
  }
}

int64_t Tensor::integer(int64_t i) const {
  require(i >= 0 && i < numel_, "indexed out of range");
  require(!is_float(dtype_), "read as integers");
  return integer_at(data_, dtype_, i);
}

double Tensor::item() const {
  require(numel_ == 1, "asked for its single element");
  return at(0);
}

Tensor Tensor::copy() const {
  Tensor t(dtype_, shape_);
  if (numel_ > 0) std::memcpy(t.data_, data_, static_cast<size_t>(bytes()));
  return t;
}

Tensor Tensor::cast(DType dtype) const {
  if (dtype == dtype_) return copy();
  Tensor t(dtype, shape_);
  // Converts integers without going through double, because a double cannot represent every i64.
  const bool exact = !is_float(dtype) && !is_float(dtype_);
  for (int64_t i = 0; i < numel_; ++i) {
    if (exact) {
      store_integer(t.data_, dtype, i, integer_at(data_, dtype_, i));
    } else {
      store_double(t.data_, dtype, i, at(i));
    }
  }
  return t;
}

std::string Tensor::str() const { return text_of(dtype_, shape_); }

void Tensor::require(bool condition, const char* what) const {
  if (!condition) throw UserError("tensor " + str() + " " + what);
}

float half_to_float(uint16_t bits, DType dtype) {
  if (dtype == DType::bf16) return bf16_to_float(bits);
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t rebased = exponent == 31 ? 255 : exponent + 127 - 15;
  return std::bit_cast<float>(sign | rebased << 23 | mantissa << 13);
}

uint16_t float_to_half(float value, DType dtype) {
  if (dtype == DType::bf16) return float_to_bf16(value);
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  const bool nan = magnitude > 0x7f800000u;
  if (nan) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  // f16: 65520 and above round to infinity.
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Subnormal f16 values are multiples of 2^-24, which is the spacing of f32 values just above
    // 0.5. So adding 0.5 rounds the value to a multiple of 2^-24.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
}

const Tensor* Batch::find(const std::string& name) const {
  for (const auto& [column, tensor] : columns) {
    if (column == name) return &tensor;
  }
  return nullptr;
}

}  // namespace fluid
