#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Resizes one axis from `in` to `out` elements, like torch.nn.functional.interpolate. The source
/// coordinate of output i is (i + 1/2) * in / out - 1/2, or i * (in - 1) / (out - 1) if
/// `align_corners`. Source coordinates are computed in exact integer arithmetic.
/// - nearest: output i reads element floor(i * in / out).
/// - linear: interpolates between the two elements around the source coordinate, which is clamped
///   to [0, in - 1].
/// - cubic: interpolates between four elements with the kernel of Keys, 1981, with coefficient
///   -0.75. Beyond the borders, repeats the first and the last element.
struct ResizeAxis {
  enum class Mode : uint8_t { nearest, linear, cubic };
  int64_t in = 1, out = 1;
  Mode mode = Mode::nearest;
  bool align_corners = false;

  int64_t taps() const;  ///< number of input elements that an output element reads: 1, 2 or 4
  /// Index of the input element that tap `tap` of output element `output` reads, in [0, in).
  Expr element(const Expr& output, int64_t tap) const;
  /// Weight of tap `tap` of output element `output`.
  Expr tap_weight(const Expr& output, int64_t tap, DType dtype) const;

  /// The output elements that read input element e have indices in [first_output(e),
  /// first_output(e) + max_outputs()). Other indices in this interval have weight 0 for e, or are
  /// out of range.
  int64_t max_outputs() const;
  Expr first_output(const Expr& element) const;
  /// Weight of input element `element` in output element `output`, summed over all taps.
  Expr weight(const Expr& output, const Expr& element, DType dtype) const;

 private:
  /// Source coordinate of output i: (i * scale + offset) / divisor.
  struct AffineMap {
    int64_t scale, offset, divisor;
  };
  AffineMap source() const;
  /// Source coordinate of output `output`, multiplied by source().divisor.
  Expr source_numerator(const Expr& output) const;
  /// Index of the element at or below the source coordinate. May be out of range in cubic mode.
  Expr lower_element(const Expr& output) const;
};

struct Resize2d {
  ResizeAxis y, x;
};
/// Returns the resizing of axes H and W from shape `input` to shape `output`, both [N, C, H, W].
Resize2d resize_of(const Attrs& attrs, const Shape& input, const Shape& output);
/// Definitions of attributes `mode` and `align_corners`.
std::vector<AttrDef> resize_attrs(std::vector<AttrDef> more);
/// Throws UserError unless attributes `mode` and `align_corners` are valid.
void require_resize_mode(const InferCtx& c);

}  // namespace fluid
