#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fluid {

enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, u8, boolean, i8 };

inline constexpr DType f64 = DType::f64, f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16,
                       i64 = DType::i64, i32 = DType::i32, u8 = DType::u8, boolean = DType::boolean,
                       i8 = DType::i8;

int64_t size_of(DType dtype);           ///< bytes per element; 1 for bool
std::string_view name_of(DType dtype);  ///< name in programs: "f32", "bool", ...
std::optional<DType> parse_dtype(std::string_view name);
bool is_float(DType dtype);
bool is_half_precision(DType dtype);  ///< f16 or bf16
bool is_integer(DType dtype);         ///< i64, i32, u8 or i8 (not bool)
bool is_signed_integer(DType dtype);  ///< i64, i32 or i8
/// Returns the dtype of arithmetic on `dtype`: f32 for f16 and bf16, else `dtype` itself.
DType compute_dtype(DType dtype);

/// Extent of a dimension: a constant, or a product of a constant, the batch size and a power of the
/// sequence length. The batch size and the sequence length are fixed when a step is compiled.
struct Dim {
  int64_t size = 0;          ///< the constant factor
  bool batch = false;        ///< whether the batch size is a factor
  uint8_t length_power = 0;  ///< exponent of the sequence length, at most kMaxLengthPower

  constexpr Dim() = default;
  constexpr Dim(int64_t n) : size(n) {}  // NOLINT: implicit, so that integers convert to Dim
  constexpr Dim(int n) : size(n) {}      // NOLINT: implicit
  static constexpr Dim of_batch(int64_t factor) {
    Dim d(factor);
    d.batch = true;
    return d;
  }
  static constexpr Dim of_length(int64_t factor) {
    Dim d(factor);
    d.length_power = 1;
    return d;
  }
  bool is_constant() const { return !batch && length_power == 0; }
  bool has_length() const { return length_power > 0; }
  /// Returns the extent for the given batch size. A dim with a sequence length needs at_length()
  /// first. Throws UserError on overflow.
  int64_t at(int64_t batch_size) const;
  Dim at_length(int64_t length) const;  ///< sets the sequence length; throws UserError on overflow
  bool is(int64_t n) const { return is_constant() && size == n; }
  /// Text: "784", "?" (the batch size n), "256?" (256 n), "L" (the sequence length), "4?L", "LL".
  std::string str() const;
  bool operator==(const Dim&) const = default;
};

inline constexpr int kMaxLengthPower = 4;

/// The batch dimension: `net.data("image", {kBatch, 1, 28, 28}, f32)`.
inline constexpr Dim kBatch = Dim::of_batch(1);
/// The sequence length of a step: `net.data("text", {kBatch, kLength}, u8)`.
inline constexpr Dim kLength = Dim::of_length(1);

/// Extents of a tensor, outermost first. Rank 0 is a scalar. At most one dim depends on the batch
/// size; any number may depend on the sequence length.
class Shape : public std::vector<Dim> {
 public:
  using std::vector<Dim>::vector;
  Shape(std::initializer_list<Dim> dims) : std::vector<Dim>(dims) {}

  int64_t rank() const { return static_cast<int64_t>(size()); }
  bool has_batch() const;
  bool has_length() const;
  bool is_constant() const { return !has_batch() && !has_length(); }
  /// Returns the number of elements, which may be a multiple of the batch size and of powers of the
  /// sequence length.
  Dim numel() const;
  int64_t numel_at(int64_t batch_size) const { return numel().at(batch_size); }
  Shape at(int64_t batch_size) const;  ///< the shape for `batch_size`; see Dim::at()
  Shape at_length(int64_t length) const;
  std::string str() const;  ///< text: "[?, 784]"
};

/// A memory layout other than plain row-major: the dims in `order`, outermost first, then the inner
/// blocks. nChw16c has order {0, 1, 2, 3} and blocks {{axis 1, 16}}. Padding elements are zero.
struct Layout {
  struct Block {
    int axis;
    int64_t size;
    bool operator==(const Block&) const = default;
  };
  std::vector<int> order;
  std::vector<Block> blocks;

  std::string str() const;  ///< name: "nChw16c"; see layout_letters()
  bool operator==(const Layout&) const = default;
};

/// Returns the letters that stand for the axes of a tensor in the name of a layout: "nchw" up to
/// rank 4, then "abcdef...". The number of letters limits the rank of a tensor with a layout.
std::string_view layout_letters(int64_t rank);

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  std::optional<Layout> layout;  ///< memory layout; nullopt: plain row-major

  std::string str() const;  ///< text: "f32[?, 784]", "f32[100, 20, 14, 14]{nChw16c}"
  /// Returns the size in bytes, including the padding of the layout. Throws UserError on overflow.
  int64_t bytes_at(int64_t batch_size) const;
  /// Returns the size in bytes, including the padding of the layout, or nullopt on overflow.
  std::optional<int64_t> checked_bytes_at(int64_t batch_size) const;
  Type at_length(int64_t length) const { return {dtype, shape.at_length(length), layout}; }
  bool operator==(const Type&) const = default;
};

}  // namespace fluid
