#pragma once

#include <string>
#include <string_view>

#include "ir/tensor.h"

namespace fluid {

/// Reads a NumPy array file (numpy.lib.format, versions 1.0 to 3.0) of a little-endian dtype that
/// Fluid has, in C or Fortran order. Throws UserError naming the file and what is wrong in it.
Tensor read_npy(const std::string& path);
/// The same from memory; `what` names the source in messages.
Tensor parse_npy(std::string_view bytes, const std::string& what);

/// Writes version 1.0 in C order, atomically. UserError for bf16, which NumPy does not have.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace fluid
