#include "ops/comm/collective.h"

namespace fluid {

OpDef reduce_scatter_op() {
  return collective_def(
      "reduce_scatter",
      "Sums one bucket of tensors over all ranks, in place. Each rank keeps the sums of its own "
      "shard of the bucket; the elements of other shards become 0.",
      {"sum", "the sum within this rank's shard and 0 elsewhere, one per operand and of its type"});
}

}  // namespace fluid
