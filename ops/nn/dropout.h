#pragma once

#include "ops/op_def.h"

namespace fluid {

/// dropout or dropout2d: whole elements of the first `dims` dimensions are dropped together; all
/// dimensions when it is 0.
OpDef dropout_def(std::string name, std::string doc, std::string x, size_t dims);

}  // namespace fluid
