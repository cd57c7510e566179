#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace fluid {

/// Integer types of NumPy that Fluid widens when it reads them, because it lacks them.
enum class NpyInteger { none, i16, u16, u32 };

/// Header of a NumPy array file.
struct NpyHeader {
  DType dtype = DType::f32;              ///< of the elements as they are read
  NpyInteger stored = NpyInteger::none;  ///< type in the file, if it is widened to `dtype`
  std::vector<int64_t> shape;
  bool fortran_order = false;
  int64_t data_offset = 0;  ///< byte offset of the first element in the file

  int64_t element_bytes() const;  ///< size in bytes of an element in the file
  int64_t data_bytes() const;     ///< size in bytes of the elements in the file
};
/// Converts elements of the file to NpyHeader::dtype. `from` holds whole elements, and must not
/// overlap `to`. Without a type to widen, copies the bytes.
void widen_npy(NpyInteger stored, std::span<const std::byte> from, std::byte* to);
/// Parses the header of a NumPy array file of `size` bytes. `start` holds the first bytes of the
/// file and must contain the whole header; kMaxNpyHeader bytes suffice for files that NumPy wrote.
/// Throws UserError for an invalid header, or if header and elements do not add up to `size` bytes.
NpyHeader parse_npy_header(std::string_view start, int64_t size, const std::string& source_name);
/// Parses the header of a NumPy array file like the overload above, but does not check its size.
NpyHeader parse_npy_header(std::string_view start, const std::string& source_name);
inline constexpr int64_t kMaxNpyHeader = int64_t{1} << 20;

/// Reads a NumPy array file (numpy.lib.format, versions 1.0 to 3.0), in C or Fortran order. The
/// dtype must be little-endian and supported by Fluid; i2 and u2 are read as i32, u4 as i64. For an
/// invalid file, throws UserError naming the file and the error.
Tensor read_npy(const std::string& path);
/// Parses the contents of a NumPy array file, like read_npy(). `source_name` replaces the path in
/// messages.
Tensor parse_npy(std::string_view bytes, const std::string& source_name);

/// Writes a NumPy array file in format version 1.0 and C order, atomically. Throws UserError for
/// bf16, which NumPy does not support.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace fluid
