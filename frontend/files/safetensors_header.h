#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/type.h"

namespace fluid {

/// Describes one tensor in the header of a safetensors file. The parser does not check the offsets
/// against the size of the file.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  int64_t begin = 0;  ///< offset of the first byte, relative to the end of the header
  int64_t end = 0;    ///< offset past the last byte, relative to the end of the header
};

/// The parsed header of a safetensors file.
struct TensorHeader {
  std::vector<TensorEntry> entries;  ///< tensors in the order of the header
  std::map<std::string, std::string> metadata;
};

/// Parses the JSON header of a safetensors file. Throws UserError "<source_name>: ..." if the
/// header violates the format: duplicate, unknown or missing keys, or numbers that are not unsigned
/// integers.
TensorHeader parse_tensor_header(std::string_view json, const std::string& source_name);

/// Returns the name of a dtype in safetensors files, such as "F32".
std::string_view safetensors_dtype_name(DType dtype);

}  // namespace fluid
