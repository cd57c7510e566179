#include "ops/source/source.h"

namespace fluid {

OpDef store_op() {
  return store_def(
      "store", "Assigns the operand to the variable named by the symbol, at the end of the step.",
      "new value, of the variable's type", {});
}

}  // namespace fluid
