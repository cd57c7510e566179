#pragma once

#include <string>

#include "ops/op_def.h"

namespace fluid {

/// Adam under `name`: weight decay is added to the gradient, or, `decoupled`, taken off the
/// parameter itself (AdamW).
OpDef adam_def(std::string name, std::string doc, bool decoupled);

}  // namespace fluid
