#include "ops/elementwise.h"

namespace fluid {

OpDef logical_or_op() {
  return logical_binary("logical_or", "Whether a or b holds.", scalar::logical_or);
}

}  // namespace fluid
