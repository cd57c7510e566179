#include "ops/comm/collective.h"

namespace fluid {

OpDef reduce_scatter_op() {
  return collective_op(
      "reduce_scatter",
      "The sums of tensors over all processes, where they lie: one bucket of them, of which "
      "each process keeps its share. In what others keep there is 0.",
      {"sum", "what this process keeps of the sum of one operand, of its type"});
}

}  // namespace fluid
