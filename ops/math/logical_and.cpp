#include "ops/elementwise.h"

namespace fluid {

OpDef logical_and_op() {
  return logical_binary_def("logical_and", "Elementwise logical and.", scalar::logical_and);
}

}  // namespace fluid
