#pragma once

#include "ops/op_def.h"

namespace fluid {

/// OpDef of tril (`keep` is ScalarOp::le) or triu (ScalarOp::ge). The result keeps the elements of
/// x where keep(column - row, attribute "diagonal") holds; the others are 0. `grad` computes the
/// gradient of x from `dy`, the gradient of the result.
OpDef triangle_def(std::string name, std::string doc, ScalarOp keep,
                   Value (*grad)(Value dy, int64_t diagonal));

}  // namespace fluid
