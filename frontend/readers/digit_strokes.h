#pragma once

#include <vector>

namespace fluid {

/// A point in the unit square in which a digit is drawn: x to the right, y down.
struct Point {
  double x = 0;
  double y = 0;
};

/// A smooth curve through its points, in drawing order.
using Stroke = std::vector<Point>;

/// Returns the variants of `digit` (0 to 9), each a list of strokes.
const std::vector<std::vector<Stroke>>& digit_variants(int digit);

}  // namespace fluid
