#pragma once

#include <string>

#include "frontend/readers/dataset.h"

namespace fluid {

/// Reads CIFAR-10's binary files in `directory`, gzipped or not: image u8[n, 3, 32, 32] and label
/// i64[n]. A record of a file is one label byte and 3072 image bytes: the red, green and blue
/// planes (https://www.cs.toronto.edu/~kriz/cifar.html). `split` "train" reads all files
/// data_batch_*.bin in the order of their names; "test" reads test_batch.bin. Throws UserError if
/// there is no file for the split, a file is damaged, or a label is above 9.
Dataset read_cifar10(const std::string& directory, const std::string& split = "train");

}  // namespace fluid
