#include "ops/comm/collective.h"

namespace fluid {

OpDef all_gather_op() {
  return collective_op(
      "all_gather",
      "A bucket of tensors, where they lie, of which each process has computed its share and "
      "gets those of the others.",
      {"y", "one of each operand, whole, of its type"});
}

}  // namespace fluid
