#pragma once

#include <string>

#include "frontend/readers/dataset.h"

namespace fluid {

/// CIFAR-10's binary files in `directory`, gzipped or not: image u8[n, 3, 32, 32] and label i64[n].
/// A record is a label's byte and an image's 3072, a plane each for red, green and blue
/// (https://www.cs.toronto.edu/~kriz/cifar.html). `split` "train" takes the files named
/// data_batch_*.bin that are there, in the order of their names, "test" takes test_batch.bin.
/// Throws UserError when there is none, and for damaged files and labels above 9.
Dataset read_cifar10(const std::string& directory, const std::string& split = "train");

}  // namespace fluid
