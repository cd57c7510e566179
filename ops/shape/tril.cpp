#include "ops/operators.h"
#include "ops/shape/triangle.h"

namespace fluid {

OpDef tril_op() {
  return triangle_def("tril", "The lower triangle of each matrix: elements above `diagonal` are 0.",
                      ScalarOp::le,
                      [](Value dy, int64_t diagonal) { return tril(dy, {.diagonal = diagonal}); });
}

}  // namespace fluid
