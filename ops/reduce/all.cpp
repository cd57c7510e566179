#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {

OpDef all_op() {
  return logical_reduction_def(
      "all", "Whether all elements along `axes` are true; true over zero elements.",
      [](Value x, const SumAttrs& along) {
        const Value falses = sum(logical_not(x), along);
        return equal(falses, scalar_like(falses, 0));
      });
}

}  // namespace fluid
