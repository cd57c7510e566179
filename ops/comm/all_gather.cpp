#include "ops/comm/collective.h"

namespace fluid {

OpDef all_gather_op() {
  return collective_def("all_gather",
                        "Gathers the ranks' shards of one bucket of tensors on every rank, in "
                        "place. Each rank has computed its own shard.",
                        {"y", "the complete tensor, one per operand and of its type"});
}

}  // namespace fluid
