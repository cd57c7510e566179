#include "ops/elementwise.h"

namespace fluid {

OpDef greater_op() { return comparison_def("greater", "Whether a > b.", ScalarOp::gt); }

}  // namespace fluid
