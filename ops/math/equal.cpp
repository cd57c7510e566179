#include "ops/elementwise.h"

namespace fluid {

OpDef equal_op() { return comparison_def("equal", "Whether a == b.", ScalarOp::eq); }

}  // namespace fluid
