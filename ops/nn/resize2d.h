#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// How resize2d takes an axis from `in` to `out` elements. Nearest: element i is element
/// floor(i in / out). Linear, with the centres of elements at halves: element i lies at
/// (i + 1/2) in / out - 1/2, held in [0, in - 1], between two elements. These are
/// torch.nn.functional.interpolate's "nearest", and "bilinear" without align_corners; places are
/// computed in integers, exactly.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  bool linear = false;

  Expr lower(const Expr& i) const;                  ///< the element at or before the place of `i`
  Expr upper(const Expr& i) const;                  ///< the one after it, or the last
  Expr fraction(const Expr& i, DType dtype) const;  ///< of the way from lower to upper

  /// The elements i that read element e are among first(e) + [0, reach()); some of these may be
  /// out of range, or have weight 0.
  int64_t reach() const;
  Expr first(const Expr& e) const;
  Expr weight(const Expr& i, const Expr& e, DType dtype) const;  ///< of element e in element i

 private:
  Expr numerator(const Expr& i) const;  ///< of the place of `i`, over 2 out; linear only
};

struct Resize2d {
  ResizeAxis y, x;
};
/// From `input` to `output`, both [N, C, H, W], by attribute `mode`.
Resize2d resize_of(const Attrs& attrs, const Shape& input, const Shape& output);
/// Requires a `mode` that there is.
void require_mode(const InferCtx& c);

}  // namespace fluid
