#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/type.h"

namespace fluid {

/// A tensor as described in the header of a safetensors file. It is not checked against the file.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  int64_t begin = 0;  ///< byte offsets, counted from the end of the header
  int64_t end = 0;
};

struct TensorHeader {
  std::vector<TensorEntry> entries;  ///< in the order of the header
  std::map<std::string, std::string> metadata;
};

/// Parses the JSON header. Throws UserError "<what>: ..." for anything that the format forbids:
/// duplicate or unknown keys, numbers that are not unsigned integers, missing fields.
TensorHeader parse_tensor_header(std::string_view json, const std::string& what);

std::string_view safetensors_name(DType dtype);  ///< "F32"

}  // namespace fluid
