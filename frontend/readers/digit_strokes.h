#pragma once

#include <vector>

namespace fluid {

/// A point in the box in which a digit is written: x to the right, y down, both in [0, 1].
struct Point {
  double x = 0;
  double y = 0;
};

/// A smooth line through its points, in the order in which a pen draws them.
using Stroke = std::vector<Point>;

/// The ways to write `digit` (0 to 9): each a list of strokes.
const std::vector<std::vector<Stroke>>& ways_to_write(int digit);

}  // namespace fluid
