#include "ops/elementwise.h"

namespace fluid {

OpDef equal_op() { return comparison("equal", "Whether a == b.", Scalar::eq); }

}  // namespace fluid
