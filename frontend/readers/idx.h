#pragma once

#include <string>

#include "ir/tensor.h"

namespace fluid {

/// Reads an idx file of unsigned bytes, gzipped or not (http://yann.lecun.com/exdb/mnist). The file
/// holds the big-endian magic number 0x0800 + `rank`, then `rank` big-endian extents, then the
/// bytes. Throws UserError naming the path when the magic number does not match `rank`, or the file
/// size does not match the extents.
Tensor read_idx(const std::string& path, int rank);

}  // namespace fluid
