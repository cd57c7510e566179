#include "ops/source/source.h"

namespace fluid {

OpDef carried_op() {
  return source_def(
      "carried",
      "Reads the value that the previous micro-batch saved with `carry` under this symbol. The "
      "value has the same offset in the transient region in all micro-batches.",
      {{"offset", int64_t{0}, "in bytes from the start of the transient region", true}});
}

}  // namespace fluid
