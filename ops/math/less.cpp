#include "ops/elementwise.h"

namespace fluid {

OpDef less_op() { return comparison_def("less", "Whether a < b.", ScalarOp::lt); }

}  // namespace fluid
