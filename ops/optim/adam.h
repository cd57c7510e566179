#pragma once

#include <string>

#include "ops/op_def.h"

namespace fluid {

/// OpDef of Adam or AdamW. With `decoupled` (AdamW), weight decay is applied to the parameter
/// itself; otherwise it is added to the gradient.
OpDef adam_def(std::string name, std::string doc, bool decoupled);

}  // namespace fluid
