#pragma once

#include <string>

#include "ops/op_def.h"

namespace fluid {

/// OpDef of Adam or AdamW. `decoupled` (AdamW) applies weight decay to the parameter itself;
/// otherwise decay is added to the gradient.
OpDef adam_def(std::string name, std::string doc, bool decoupled);

}  // namespace fluid
