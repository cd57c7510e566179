#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Resizing of one axis from `in` to `out` elements, as in torch.nn.functional.interpolate with
/// mode "nearest" or "bilinear" without align_corners. Nearest: output i reads element floor(i * in
/// / out). Linear: output i interpolates at source coordinate (i + 1/2) * in / out - 1/2, clamped
/// to [0, in - 1]. Source coordinates are computed in exact integer arithmetic.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  bool linear = false;

  Expr lower_element(const Expr& output) const;  ///< element at or below the source coordinate
  Expr upper_element(const Expr& output) const;  ///< lower_element() + 1, at most in - 1
  /// Interpolation weight of upper_element(output), in [0, 1).
  Expr upper_weight(const Expr& output, DType dtype) const;

  /// The outputs that read element e lie in [first_output(e), first_output(e) + max_outputs()).
  /// Other outputs in this range have weight 0 or are out of range.
  int64_t max_outputs() const;
  Expr first_output(const Expr& element) const;
  /// Interpolation weight with which output `output` reads element `element`.
  Expr weight(const Expr& output, const Expr& element, DType dtype) const;

 private:
  /// Linear mode: source coordinate of output `output`, multiplied by 2 * out.
  Expr source_numerator(const Expr& output) const;
};

struct Resize2d {
  ResizeAxis y, x;
};
/// Returns the resizing of axes H and W from shape `input` to shape `output`, both [N, C, H, W].
/// Attribute `mode` selects nearest or linear interpolation.
Resize2d resize_of(const Attrs& attrs, const Shape& input, const Shape& output);
/// Throws UserError unless attribute `mode` is "nearest" or "bilinear".
void require_resize_mode(const InferCtx& c);

}  // namespace fluid
