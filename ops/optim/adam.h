#pragma once

#include <string>

#include "ops/op_def.h"

namespace fluid {

/// OpDef of Adam or AdamW. AdamW (`decoupled`) applies weight decay to the parameter; Adam adds it
/// to the gradient.
OpDef adam_def(std::string type, std::string doc, bool decoupled);

}  // namespace fluid
