#pragma once

#include <string>

#include "frontend/readers/dataset.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// MNIST as distributed by its authors, from `directory`: image u8[n, 1, 28, 28] and label i64[n].
/// `split` is "train" or "test". Throws UserError when files are missing or damaged, and for a
/// label that is not a digit.
Dataset read_mnist(const std::string& directory, const std::string& split = "train");

/// Batches of MNIST's training samples: `for (const Batch& batch : Mnist(dir, {.batch = 100}))`.
class Mnist : public Reader {
 public:
  explicit Mnist(const std::string& directory, const ReaderOptions& options = {})
      : Reader(read_mnist(directory), options) {}
};

/// Images u8 of 28x28 and labels u8 as a dataset with columns image and label, checked: equal
/// counts, labels below 10. `what` names the source in messages.
Dataset digit_dataset(Tensor images, const Tensor& labels, const std::string& what);

}  // namespace fluid
