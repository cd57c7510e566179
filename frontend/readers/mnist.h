#pragma once

#include <string>

#include "frontend/readers/dataset.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// Reads MNIST's original files in `directory`: image u8[n, 1, 28, 28] and label i64[n]. `split` is
/// "train" or "test". Throws UserError when a file is missing or damaged, or a label is not a
/// digit.
Dataset read_mnist(const std::string& directory, const std::string& split = "train");

/// A reader of MNIST's training split: `for (const Batch& batch : Mnist(dir, {.batch = 100}))`.
class Mnist : public Reader {
 public:
  explicit Mnist(const std::string& directory, const ReaderOptions& options = {})
      : Reader(read_mnist(directory), options) {}
};

/// Creates a dataset with the columns image and label from 28x28 u8 images and u8 labels. Throws
/// UserError when their counts differ or a label is above 9. `source_name` names the source in
/// messages.
Dataset digit_dataset(Tensor images, const Tensor& labels, const std::string& source_name);

}  // namespace fluid
