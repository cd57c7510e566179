#include "ops/elementwise.h"

namespace fluid {

OpDef logical_and_op() {
  return logical_binary("logical_and", "Whether a and b both hold.", scalar::logical_and);
}

}  // namespace fluid
