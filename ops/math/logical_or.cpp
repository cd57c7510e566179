#include "ops/elementwise.h"

namespace fluid {

OpDef logical_or_op() {
  return logical_binary_def("logical_or", "Elementwise logical or.", scalar::logical_or);
}

}  // namespace fluid
