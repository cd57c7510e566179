#include "ops/comm/exchange.h"
#include "ops/record.h"

namespace fluid {
namespace {

/// Each process's operands go into the sums of all: so do the gradients, of those that have one.
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
  return OpDef{
      .name = "all_reduce",
      .doc =
          "The sums of tensors over all processes, where they lie: one bucket of them in one "
          "message. Every process runs the buckets in the order of their numbers: those of forward "
          "are negative, and the gradients of number n are exchanged as number -1 - n.",
      .inputs = {{.name = "x",
                  .doc = "floats of one dtype, without a batch extent",
                  .variadic = true}},
      .attrs = {{"bucket", int64_t{0}, "number of the bucket"}},
      .outputs = {{"sum", "one of each operand, of its type"}},
      .infer = infer_exchange,
      .grad = GradFn(all_reduce_grad),
      .effects = Collective{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx&) { return Cost{}; },
      .in_place = {{.out = 0, .in = 0}},
      .lower = Exchange{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
