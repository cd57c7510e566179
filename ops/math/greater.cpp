#include "ops/elementwise.h"

namespace fluid {

OpDef greater_op() { return comparison("greater", "Whether a > b.", Scalar::gt); }

}  // namespace fluid
