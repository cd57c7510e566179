// Classification losses. Dimension 1 is the class dimension.

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

template <class Attributes>
Attributes loss_attrs(const Context& c) {
  Attributes attrs;
  attrs.axis = 1;
  attrs.reduction = c.text("reduction", "mean");
  if (c.has_attr("ignore_index")) attrs.ignore_index = c.integer("ignore_index", 0);
  return attrs;
}

Operands negative_log_likelihood(const Context& c) {
  const auto attrs = loss_attrs<NllLossAttrs>(c);
  return {c.has(2) ? nll_loss(c.in(0), c.in(1), c.in(2), attrs)
                   : nll_loss(c.in(0), c.in(1), attrs)};
}

Operands cross_entropy(const Context& c) {
  const auto attrs = loss_attrs<SoftmaxCrossEntropyAttrs>(c);
  const Value x = c.in(0);
  const Value loss = c.has(2) ? softmax_cross_entropy(x, c.in(1), c.in(2), attrs)
                              : softmax_cross_entropy(x, c.in(1), attrs);
  if (!c.wants(1)) return {loss};
  return {loss, log_softmax(x, {.axis = 1})};
}

}  // namespace

void add_losses(Mappings& all) {
  all["NegativeLogLikelihoodLoss"] = negative_log_likelihood;
  all["SoftmaxCrossEntropyLoss"] = cross_entropy;
}

}  // namespace fluid::onnx
