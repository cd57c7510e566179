#pragma once

#include "ops/op_def.h"

namespace fluid {

/// OpDef of the update of a parameter's average: (average, param, update) -> new average. `check`
/// validates the attributes.
OpDef average_def(const std::string& name, const std::string& doc, std::vector<AttrDef> attrs,
                  std::function<void(const InferCtx&)> check,
                  std::function<Expr(const LowerCtx&)> average);

}  // namespace fluid
