#include "ops/elementwise.h"

namespace fluid {

OpDef greater_equal_op() { return comparison("greater_equal", "Whether a >= b.", Scalar::ge); }

}  // namespace fluid
