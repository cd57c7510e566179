#include "ops/source/source.h"

namespace fluid {

OpDef carried_op() {
  return source("carried",
                "What the slice of the batch before left by `carry` under this symbol. It lies at "
                "a place of its own in the transient memory, which is the same in all slices.",
                {{"offset", int64_t{0}, "bytes, from the start of the transient memory", true}});
}

}  // namespace fluid
