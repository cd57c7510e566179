// Classification losses. Dimension 1 is the class dimension.

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

template <class Attributes>
Attributes loss_attrs(const Context& c) {
  Attributes attrs;
  attrs.axis = 1;
  attrs.reduction = c.string_attr("reduction", "mean");
  if (c.has_attr("ignore_index")) attrs.ignore_index = c.int_attr("ignore_index", 0);
  return attrs;
}

Operands negative_log_likelihood(const Context& c) {
  const auto attrs = loss_attrs<NllLossAttrs>(c);
  return {c.has_input(2) ? nll_loss(c.input(0), c.input(1), c.input(2), attrs)
                         : nll_loss(c.input(0), c.input(1), attrs)};
}

Operands cross_entropy(const Context& c) {
  const auto attrs = loss_attrs<SoftmaxCrossEntropyAttrs>(c);
  const Value x = c.input(0);
  const Value loss = c.has_input(2) ? softmax_cross_entropy(x, c.input(1), c.input(2), attrs)
                                    : softmax_cross_entropy(x, c.input(1), attrs);
  if (!c.has_output(1)) return {loss};
  return {loss, log_softmax(x, {.axis = 1})};
}

}  // namespace

void add_losses(Mappings& all) {
  all["NegativeLogLikelihoodLoss"] = negative_log_likelihood;
  all["SoftmaxCrossEntropyLoss"] = cross_entropy;
}

}  // namespace fluid::onnx
