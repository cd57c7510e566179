#pragma once

#include <vector>

namespace fluid {

/// A point in the unit square that encloses a digit: x points right, y points down.
struct Point {
  double x = 0;
  double y = 0;
};

/// A pen stroke: the points that its smooth curve passes through.
using Stroke = std::vector<Point>;

/// Returns the handwriting variants of `digit` (0 to 9). A variant is a list of strokes.
const std::vector<std::vector<Stroke>>& digit_stroke_variants(int digit);

}  // namespace fluid
