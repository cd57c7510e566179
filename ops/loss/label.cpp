#include "ops/loss/label.h"

namespace fluid {

void require_labels(const InferCtx& c) {
  const Type &x = c.in(0), &label = c.in(1);
  c.require(is_float(x.dtype) && x.shape.rank() >= 1 && !x.shape.back().batch,
            "expects float rows [..., C], got " + x.str());
  c.require(!x.shape.back().is(0), "rows of zero classes: " + x.str());
  const Shape rows(x.shape.begin(), x.shape.end() - 1);
  c.require(
      is_integer(label.dtype) && label.shape == rows,
      "expects integer labels " + rows.str() + " for rows " + x.str() + ", got " + label.str());
}

}  // namespace fluid
