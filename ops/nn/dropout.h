#pragma once

#include "ops/op_def.h"

namespace fluid {

/// OpDef of dropout and dropout2d. One random draw decides for each index of the first `dims`
/// dimensions; 0 means one draw per element. `x` documents the operand.
OpDef dropout_def(std::string name, std::string doc, std::string x, size_t dims);

}  // namespace fluid
