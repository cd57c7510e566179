#include "ops/elementwise.h"
#include "ops/nn/elu.h"

namespace fluid {
namespace {

// With these constants, layers preserve mean 0 and variance 1 of the activations (Klambauer et al.,
// "Self-normalizing neural networks", 2017).
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

}  // namespace

OpDef selu_op() {
  return elu_def("selu",
                 "1.0507 * elu(x) with alpha = 1.6733, which keeps mean 0 and variance 1 over "
                 "layers (Klambauer et al., 2017).",
                 {}, infer_float_unary, [](const Attrs&) {
                   return EluCoefficients{.alpha = kSeluAlpha, .scale = kSeluScale};
                 });
}

}  // namespace fluid
