#include "ops/comm/exchange_kind.h"

namespace fluid {

ExchangeKind exchange_kind(const ir::Op& op) {
  if (op.name == "reduce_scatter") return ExchangeKind::scatter;
  if (op.name == "all_gather") return ExchangeKind::gather;
  check(op.name == "all_reduce", "'" + op.name + "' exchanges nothing");
  return ExchangeKind::sum;
}

}  // namespace fluid
