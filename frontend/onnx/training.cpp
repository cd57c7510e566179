// Operators of domain ai.onnx.preview.training. Inputs of the optimizers: the learning rate R, the
// update count T, then all tensors, all gradients, and all states of each kind. Outputs: the
// updated tensors, then the updated states.

#include <cmath>

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

/// Updates one tensor. Returns the new value, then the new states. The gradient `g` includes L2
/// regularization by norm_coefficient.
using Update = std::function<Values(Value x, Value g, const Values& states)>;

Operands updated(const Context& c, size_t states, const Update& update) {
  const size_t kinds = states + 2, tensors = (c.num_inputs() - 2) / kinds;
  if (c.num_inputs() != 2 + tensors * kinds)
    c.fail_unsupported("inputs do not fit " + std::to_string(kinds));
  Operands outputs(tensors * (states + 1));
  for (size_t i = 0; i < tensors; ++i) {
    const Value x = c.input(2 + i), gradient = c.input(2 + tensors + i);
    Values of_tensor;
    for (size_t s = 0; s < states; ++s) of_tensor.push_back(c.input(2 + (2 + s) * tensors + i));
    const Value g = gradient + x * c.float_attr("norm_coefficient", 0);
    const Values y = update(x, g, of_tensor);
    for (size_t k = 0; k < y.size(); ++k) outputs[k * tensors + i] = y[k];
  }
  return outputs;
}

/// The learning rate R as a scalar of x's dtype.
Value rate(const Context& c, Value x) { return cast(reshape(c.input(0), Shape{}), x.dtype()); }

Value update_count(const Context& c, Value x) {
  return cast(reshape(c.input(1), Shape{}), x.dtype());
}

Operands adagrad(const Context& c) {
  return updated(c, 1, [&](Value x, Value g, const Values& states) {
    const Value decay = update_count(c, x) * c.float_attr("decay_factor", 0) + 1.0;
    const Value sum = states[0] + square(g);
    const Value step = rate(c, x) / decay * g / (sqrt(sum) + c.float_attr("epsilon", 0));
    return Values{x - step, sum};
  });
}

/// Applies Adam's bias correction if T > 0, that is, from the second update on.
Operands adam(const Context& c) {
  const double alpha = c.float_attr("alpha", 0.9), beta = c.float_attr("beta", 0.999);
  return updated(c, 2, [&](Value x, Value g, const Values& states) {
    const Value v = states[0] * alpha + g * (1 - alpha);
    const Value h = states[1] * beta + square(g) * (1 - beta);
    const Value t = update_count(c, x), r = rate(c, x);
    const Value v_share = 1.0 - pow(scalar_like(x, alpha), t);
    const Value h_share = 1.0 - pow(scalar_like(x, beta), t);
    const Value corrected = where(greater(t, scalar_like(t, 0)), r * sqrt(h_share) / v_share, r);
    const Value next = x - corrected * v / (sqrt(h) + c.float_attr("epsilon", 0));
    return Values{next * (1 - c.float_attr("norm_coefficient_post", 0)), v, h};
  });
}

Operands momentum(const Context& c) {
  const double alpha = c.float_attr("alpha", 0), beta = c.float_attr("beta", 1);
  const bool nesterov = c.string_attr("mode", "standard") == "nesterov";
  return updated(c, 1, [&](Value x, Value g, const Values& states) {
    const Value later = greater(update_count(c, x), scalar_like(x, 0));
    const Value share = where(later, scalar_like(x, beta), scalar_like(x, 1));
    const Value v = states[0] * alpha + g * share;
    return Values{x - rate(c, x) * (nesterov ? g + v * alpha : v), v};
  });
}

/// Gradient: differentiates value `y` with respect to the inputs `xs`. Treats the other inputs as
/// constants.
Operands gradients_of(const Context& c) {
  Values xs;
  for (size_t i = 0; i < c.strings_attr("xs").size(); ++i) xs.push_back(c.input(i));
  const Values dxs = gradients(c.tensor_value(c.string_attr("y", "")), xs, c.loc());
  return {dxs.begin(), dxs.end()};
}

}  // namespace

void add_training(Mappings& all) {
  all["Adagrad"] = adagrad;
  all["Adam"] = adam;
  all["Gradient"] = gradients_of;
  all["Momentum"] = momentum;
}

}  // namespace fluid::onnx
