#pragma once

#include <optional>
#include <vector>

#include "ir/tensor.h"

namespace fluid {

/// A histogram of the finite elements of a tensor. Bins of equal width span the range from the
/// minimum to the maximum element. A bin contains its left edge; the last bin also contains its
/// right edge, as in numpy.histogram. If all elements are equal, there is one bin.
struct Histogram {
  double min = 0, max = 0;
  double num = 0;  ///< number of finite elements
  double sum = 0, sum_squares = 0;
  std::vector<double> right_edges, counts;  ///< right edge and count of each bin
};

/// Returns the histogram of a float or integer tensor; nullopt if it has no finite element.
std::optional<Histogram> histogram_of(const Tensor& values, int bins = 30);

}  // namespace fluid
