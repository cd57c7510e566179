#pragma once

#include "ops/op_def.h"

namespace fluid {

/// OpDef of tril (`keep` is ScalarOp::le) or triu (ScalarOp::ge): elements where
/// keep(column - row, attribute "diagonal") holds are x's, and the others are 0. `grad` gives the
/// gradient of x for the gradient of the result.
OpDef triangle_def(std::string name, std::string doc, ScalarOp keep,
                   Value (*grad)(Value dy, int64_t diagonal));

}  // namespace fluid
