#pragma once

#include "ops/op_def.h"

namespace fluid {

/// OpDef of dropout (`dims` = 0) or dropout2d (`dims` = 2). Draws one random number per element, or
/// per index of the first `dims` dimensions of the operand if `dims` is not 0. `x_doc` is the
/// documentation of the operand.
OpDef dropout_def(std::string name, std::string doc, std::string x_doc, size_t dims);

}  // namespace fluid
