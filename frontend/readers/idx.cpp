#include "frontend/readers/idx.h"

#include "frontend/files/gz.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr uint32_t kUnsignedBytes = 0x800;

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

}  // namespace

Tensor read_idx(const std::string& path, int rank) {
  auto bytes = std::make_shared<std::string>(read_gz_or_plain(path));
  const size_t header = 4 + 4 * static_cast<size_t>(rank);
  const auto need = [&](size_t size) {
    if (bytes->size() < size) throw UserError("'" + path + "' is cut off in its header");
  };
  need(4);
  const uint32_t magic = big_endian(*bytes, 0),
                 expected = kUnsignedBytes + static_cast<uint32_t>(rank);
  if (magic != expected) {
    throw UserError("'" + path + "' is not an idx file of bytes with " + std::to_string(rank) +
                    " extents: its magic number is " + std::to_string(magic) + ", not " +
                    std::to_string(expected));
  }
  need(header);
  std::vector<int64_t> shape;
  int64_t size = 1;
  for (int d = 0; d < rank; ++d) {
    shape.push_back(big_endian(*bytes, 4 + 4 * static_cast<size_t>(d)));
    if (__builtin_mul_overflow(size, shape.back(), &size)) {
      throw UserError("'" + path + "' has extents whose product overflows");
    }
  }
  const auto held = static_cast<int64_t>(bytes->size() - header);
  if (held != size) {
    throw UserError("'" + path + "' holds " + std::to_string(held) +
                    " bytes, but its header says " + std::to_string(size));
  }
  return Tensor::view(DType::u8, shape, bytes->data() + header, bytes);
}

}  // namespace fluid
