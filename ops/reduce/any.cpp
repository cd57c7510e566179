#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {

OpDef any_op() {
  return logical_reduction_def(
      "any", "Whether any element along `axes` is true; false over zero elements.",
      [](Value x, const SumAttrs& along) {
        const Value trues = sum(x, along);
        return greater(trues, scalar_like(trues, 0));
      });
}

}  // namespace fluid
