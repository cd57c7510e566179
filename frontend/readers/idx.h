#pragma once

#include <string>

#include "ir/tensor.h"

namespace fluid {

/// An idx file of unsigned bytes, gzipped or not (http://yann.lecun.com/exdb/mnist): a big-endian
/// magic number 0x08NN, N big-endian extents, the bytes. Throws UserError naming the path when the
/// magic number is another than that of `rank` extents, or the size is not what the extents say.
Tensor read_idx(const std::string& path, int rank);

}  // namespace fluid
