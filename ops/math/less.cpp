#include "ops/elementwise.h"

namespace fluid {

OpDef less_op() { return comparison("less", "Whether a < b.", Scalar::lt); }

}  // namespace fluid
