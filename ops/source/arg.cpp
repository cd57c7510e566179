#include "ops/source/source.h"

namespace fluid {

OpDef arg_op() {
  return source("arg", "An operand of the fused op whose body holds it.",
                {{"index", int64_t{0}, "which operand of the fused op", true}});
}

}  // namespace fluid
