#include "ops/elementwise.h"

namespace fluid {

OpDef not_equal_op() { return comparison_def("not_equal", "Whether a != b.", ScalarOp::ne); }

}  // namespace fluid
