#include "ops/elementwise.h"

namespace fluid {

OpDef less_equal_op() { return comparison_def("less_equal", "Whether a <= b.", ScalarOp::le); }

}  // namespace fluid
