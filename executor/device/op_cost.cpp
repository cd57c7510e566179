#include "executor/device/op_cost.h"

#include "ops/table.h"

namespace fluid {

Cost cost_of(const ir::Op& op, int64_t batch) {
  std::vector<Type> in, out;
  for (const Value& v : op.operands) in.push_back(v.type());
  for (const ir::Result& r : op.results) out.push_back(r.type);
  for (auto* types : {&in, &out}) {
    for (Type& t : *types) t.shape = t.shape.at(batch);
  }
  return (*def_of(op).cost)({in, out, op.attrs});
}

}  // namespace fluid
