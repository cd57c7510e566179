#include "ops/comm/exchange.h"

namespace fluid {

ExchangeKind exchange_kind(const ir::Op& op) {
  if (op.name == "reduce_scatter") return ExchangeKind::scatter;
  if (op.name == "all_gather") return ExchangeKind::gather;
  check(op.name == "all_reduce", "'" + op.name + "' exchanges nothing");
  return ExchangeKind::sum;
}

std::vector<Type> infer_exchange(const InferCtx& c) {
  for (const Type& type : c.ins()) {
    c.require(is_float(type.dtype) && type.dtype == c.in(0).dtype && !type.shape.numel().batch,
              "expects floats of one dtype and known size, got " + type.str());
  }
  return c.ins();
}

}  // namespace fluid
