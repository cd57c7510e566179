#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Resizing of one axis from `in` to `out` elements. Nearest: output i reads element floor(i in /
/// out). Linear: output i samples at (i + 1/2) in / out - 1/2, clamped to [0, in - 1], between two
/// elements. These are "nearest" and "bilinear" without align_corners of
/// torch.nn.functional.interpolate. Source coordinates are exact integer arithmetic.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  bool linear = false;

  Expr lower(const Expr& i) const;  ///< the element at or before the source coordinate
  Expr upper(const Expr& i) const;  ///< the next element, clamped to the last
  Expr fraction(const Expr& i, DType dtype) const;  ///< interpolation weight of upper(i), in [0, 1)

  /// The outputs i that read element e are among first(e) + [0, reach()). Some candidates may be
  /// out of range or have weight 0.
  int64_t reach() const;
  Expr first(const Expr& e) const;
  Expr weight(const Expr& i, const Expr& e, DType dtype) const;  ///< of element e in output i

 private:
  Expr numerator(const Expr& i) const;  ///< source coordinate of output i, times 2 out; linear only
};

struct Resize2d {
  ResizeAxis y, x;
};
/// The axes of a resize from `input` to `output`, both [N, C, H, W]. Attribute `mode` selects
/// nearest or linear.
Resize2d resize_of(const Attrs& attrs, const Shape& input, const Shape& output);
/// Fails unless attribute `mode` is "nearest" or "bilinear".
void require_mode(const InferCtx& c);

}  // namespace fluid
