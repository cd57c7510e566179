#include "ops/source/source.h"

namespace fluid {

OpDef carry_op() {
  return sink("carry",
              "Leaves the operand for the next slice of the batch, which reads it as `carried`.",
              "without a batch extent", {{"offset", int64_t{0}, "as that of `carried`", true}});
}

}  // namespace fluid
