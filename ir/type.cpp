#include "ir/type.h"

#include <algorithm>
#include <array>

#include "ir/error.h"

namespace fluid {
namespace {

struct DTypeInfo {
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<DTypeInfo, 9> kDTypes = {{{"f64", 8},
                                               {"f32", 4},
                                               {"f16", 2},
                                               {"bf16", 2},
                                               {"i64", 8},
                                               {"i32", 4},
                                               {"u8", 1},
                                               {"bool", 1},
                                               {"i8", 1}}};

int64_t checked_product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw UserError("a shape has more elements than a 64-bit integer counts");
  }
  return product;
}

}  // namespace

int64_t size_of(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].bytes; }
std::string_view name_of(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_half_precision(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
bool is_float(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || is_half_precision(dtype);
}
bool is_integer(DType dtype) { return !is_float(dtype) && dtype != DType::boolean; }
bool is_signed_integer(DType dtype) { return is_integer(dtype) && dtype != DType::u8; }
DType compute_dtype(DType dtype) { return is_half_precision(dtype) ? DType::f32 : dtype; }

int64_t Dim::at(int64_t batch_size) const {
  check(!has_length(), [&] { return "the extent " + str() + " is used before its length is set"; });
  return batch ? checked_product(size, batch_size) : size;
}

Dim Dim::at_length(int64_t length) const {
  Dim d = *this;
  for (; d.length_power > 0; --d.length_power) d.size = checked_product(d.size, length);
  return d;
}

std::string Dim::str() const {
  const std::string symbols = (batch ? "?" : "") + std::string(length_power, 'L');
  return size == 1 && !symbols.empty() ? symbols : std::to_string(size) + symbols;
}

bool Shape::has_batch() const {
  return std::ranges::any_of(*this, [](const Dim& d) { return d.batch; });
}

bool Shape::has_length() const {
  return std::ranges::any_of(*this, [](const Dim& d) { return d.has_length(); });
}

Dim Shape::numel() const {
  Dim n(1);
  for (const Dim& d : *this) {
    if (d.batch && n.batch) throw UserError("shape " + str() + " has two batch dimensions");
    n.size = checked_product(n.size, d.size);
    n.batch = n.batch || d.batch;
    n.length_power = static_cast<uint8_t>(n.length_power + d.length_power);
  }
  return n;
}

Shape Shape::at(int64_t batch_size) const {
  Shape s;
  for (const Dim& d : *this) s.emplace_back(d.at(batch_size));
  return s;
}

Shape Shape::at_length(int64_t length) const {
  Shape s;
  for (const Dim& d : *this) s.push_back(d.at_length(length));
  return s;
}

std::string Shape::str() const {
  std::string s = "[";
  for (size_t i = 0; i < size(); ++i) s += (i ? ", " : "") + (*this)[i].str();
  return s + "]";
}

std::string_view layout_letters(int64_t rank) {
  return rank <= 4 ? std::string_view("nchw") : std::string_view("abcdefghijkl");
}

std::string Layout::str() const {
  const std::string_view letters = layout_letters(static_cast<int64_t>(order.size()));
  auto letter = [&](int axis) { return letters.at(static_cast<size_t>(axis)); };
  std::string s;
  for (int axis : order) {
    bool blocked = false;
    for (const Block& b : blocks) blocked = blocked || b.axis == axis;
    s += static_cast<char>(blocked ? letter(axis) - 'a' + 'A' : letter(axis));
  }
  for (const Block& b : blocks) s += std::to_string(b.size) + letter(b.axis);
  return s;
}

std::string Type::str() const {
  return std::string(name_of(dtype)) + shape.str() + (layout ? "{" + layout->str() + "}" : "");
}

std::optional<int64_t> Type::checked_bytes_at(int64_t batch_size) const {
  int64_t n = size_of(dtype);
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    const Dim& dim = shape[static_cast<size_t>(axis)];
    int64_t block = 1;
    for (const Layout::Block& b : layout ? layout->blocks : std::vector<Layout::Block>{}) {
      if (b.axis == axis && __builtin_mul_overflow(block, b.size, &block)) return std::nullopt;
    }
    check(!dim.has_length(), [&] { return "the bytes of " + str() + " need its length"; });
    int64_t extent = dim.size;
    if (dim.batch && __builtin_mul_overflow(extent, batch_size, &extent)) return std::nullopt;
    if (__builtin_add_overflow(extent, block - 1, &extent)) return std::nullopt;
    if (__builtin_mul_overflow(n, extent / block * block, &n)) return std::nullopt;
  }
  return n;
}

int64_t Type::bytes_at(int64_t batch_size) const {
  if (const auto bytes = checked_bytes_at(batch_size)) return *bytes;
  throw UserError("the bytes of " + str() + " with batch " + std::to_string(batch_size) +
                  " overflow a 64-bit integer");
}

}  // namespace fluid
