#include "ops/comm/collective.h"
#include "ops/record.h"

namespace fluid {
namespace {

/// Gradient of all_reduce: an all_reduce of the gradients of the results. Omits results without a
/// gradient.
Values all_reduce_grad(const GradCtx& c) {
  Values gradients(c.arity()), given;
  for (size_t i = 0; i < c.arity(); ++i) {
    if (c.dout(i)) given.push_back(c.dout(i));
  }
  const int64_t bucket = -1 - c.attr<int64_t>("bucket");
  const Values sums = record(*c.op().graph(), "all_reduce", given, {{"bucket", bucket}}, {});
  auto sum = sums.begin();
  for (size_t i = 0; i < c.arity(); ++i) {
    if (c.dout(i)) gradients[i] = *sum++;
  }
  return gradients;
}

}  // namespace

OpDef all_reduce_op() {
  OpDef op = collective_def(
      "all_reduce",
      "Sums one bucket of tensors over all ranks, in place and in one message. Every "
      "rank runs the buckets in ascending order of `bucket`. Collectives of the "
      "forward graph have negative numbers. The gradients of bucket n are reduced as "
      "bucket -1 - n, or later if buckets of parameter gradients come in between.",
      {"sum", "the sum over all ranks, one per operand and of its type"});
  op.grad = GradFn(all_reduce_grad);
  return op;
}

}  // namespace fluid
