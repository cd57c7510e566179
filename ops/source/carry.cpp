#include "ops/source/source.h"

namespace fluid {

OpDef carry_op() {
  return store_def("carry",
                   "Saves the operand for the next micro-batch, which reads it with `carried`.",
                   "tensor without a batch dimension",
                   {{"offset", int64_t{0},
                     "in bytes from the start of the transient region, as of `carried`", true}});
}

}  // namespace fluid
