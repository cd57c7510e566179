#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Coefficients of scale * (x > 0 ? x : alpha * expm1(input_scale * x)).
struct EluCoefficients {
  double alpha = 1;
  double scale = 1;
  double input_scale = 1;
};

/// OpDef of elu, selu or celu. `coefficients` computes the coefficients from the attributes.
OpDef elu_def(std::string name, std::string doc, std::vector<AttrDef> attrs,
              std::function<std::vector<Type>(const InferCtx&)> infer,
              std::function<EluCoefficients(const Attrs&)> coefficients);

}  // namespace fluid
