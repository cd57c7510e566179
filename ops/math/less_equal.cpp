#include "ops/elementwise.h"

namespace fluid {

OpDef less_equal_op() { return comparison("less_equal", "Whether a <= b.", Scalar::le); }

}  // namespace fluid
