#include "ops/elementwise.h"

namespace fluid {

OpDef logical_xor_op() {
  return logical_binary_def(
      "logical_xor", "Elementwise logical exclusive or.",
      [](const Expr& a, const Expr& b) { return scalar::compare(ScalarOp::ne, a, b); });
}

}  // namespace fluid
