#pragma once

#include <string>
#include <string_view>

#include "ir/tensor.h"

namespace fluid {

/// Reads a NumPy array file (numpy.lib.format, versions 1.0 to 3.0), in C or Fortran order. The
/// dtype must be little-endian and supported by Fluid. For an invalid file, throws UserError naming
/// the file and the error.
Tensor read_npy(const std::string& path);
/// Parses a NumPy array file in memory, like read_npy(). `source_name` names the source in
/// messages.
Tensor parse_npy(std::string_view bytes, const std::string& source_name);

/// Writes a NumPy array file in format version 1.0 and C order, atomically. Throws UserError for
/// bf16, which NumPy does not have.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace fluid
