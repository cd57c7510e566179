#include "ops/source/source.h"

namespace fluid {

OpDef arg_op() {
  return source_def("arg", "Stands for an operand of the `fused` op in the op's body graph.",
                    {{"index", int64_t{0}, "index of the operand", true}});
}

}  // namespace fluid
