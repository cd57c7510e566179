#include "ops/comm/collective.h"

namespace fluid {

CollectiveKind collective_kind(const ir::Op& op) {
  if (op.name == "reduce_scatter") return CollectiveKind::reduce_scatter;
  if (op.name == "all_gather") return CollectiveKind::all_gather;
  check(op.name == "all_reduce", "'" + op.name + "' is not a collective");
  return CollectiveKind::all_reduce;
}

namespace {

std::vector<Type> infer_collective(const InferCtx& c) {
  for (const Type& type : c.ins()) {
    c.require(is_float(type.dtype) && type.dtype == c.in(0).dtype && !type.shape.numel().batch,
              "expects float tensors of one dtype without a batch dimension, got " + type.str());
  }
  return c.ins();
}

}  // namespace

OpDef collective_def(const std::string& name, const std::string& doc, const PortDef& result) {
  return OpDef{
      .name = name,
      .doc = doc,
      .inputs = {{.name = "x",
                  .doc = "float tensors of one dtype, without a batch dimension",
                  .variadic = true}},
      .attrs = {{"bucket", int64_t{0}, "bucket number, which orders the collectives of a step"}},
      .outputs = {result},
      .infer = infer_collective,
      .grad = NoGrad{},
      .effects = Collective{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx&) { return Cost{}; },
      .in_place = {{.out = 0, .in = 0}},
      .lower = CollectiveOp{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
