#include "ops/elementwise.h"

namespace fluid {

OpDef not_equal_op() { return comparison("not_equal", "Whether a != b.", Scalar::ne); }

}  // namespace fluid
