#include "ops/elementwise.h"

namespace fluid {

OpDef greater_equal_op() {
  return comparison_def("greater_equal", "Whether a >= b.", ScalarOp::ge);
}

}  // namespace fluid
