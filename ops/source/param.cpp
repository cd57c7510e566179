#include "ops/source/source.h"

namespace fluid {

OpDef param_op() { return variable("param", "A trainable variable, known by its symbol."); }

}  // namespace fluid
