#include "ops/source/source.h"

namespace fluid {

OpDef store_op() {
  return sink("store",
              "Writes the operand into the variable named by the symbol at the end of the step.",
              "of the variable's type", {});
}

}  // namespace fluid
