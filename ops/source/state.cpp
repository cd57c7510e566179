#include "ops/source/source.h"

namespace fluid {

OpDef state_op() {
  return variable("state",
                  "A variable that is no parameter (moments, counters, running statistics), known "
                  "by its symbol.");
}

}  // namespace fluid
