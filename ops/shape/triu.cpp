#include "ops/operators.h"
#include "ops/shape/triangle.h"

namespace fluid {

OpDef triu_op() {
  return triangle_def("triu", "The upper triangle of each matrix: elements below `diagonal` are 0.",
                      ScalarOp::ge,
                      [](Value dy, int64_t diagonal) { return triu(dy, {.diagonal = diagonal}); });
}

}  // namespace fluid
