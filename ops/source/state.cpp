#include "ops/source/source.h"

namespace fluid {

OpDef state_op() {
  return variable_def(
      "state",
      "A variable that is not a parameter, named by its symbol: a moment, a counter or "
      "a running statistic.");
}

}  // namespace fluid
