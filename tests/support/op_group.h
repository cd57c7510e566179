#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid::testing {

/// Appends to `body` the body graph of a fused op that holds a copy of `op` alone. Returns the
/// copy.
inline ir::Op* make_group(const ir::Op& op, ir::Graph& body) {
  std::vector<Value> args;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Attrs attrs = {{"index", static_cast<int64_t>(i)}};
    args.push_back(body.append("arg", {}, attrs, {op.operands[i].type()})->result());
  }
  std::vector<Type> types;
  for (const ir::Result& r : op.results) types.push_back(r.type);
  ir::Op* copy = body.append(op.name, args, op.attrs, types);
  for (size_t r = 0; r < types.size(); ++r) {
    body.outputs.push_back({std::to_string(r), copy->result(static_cast<int>(r))});
  }
  return copy;
}

inline std::vector<int64_t> extents_of(const std::vector<Dim>& dims, int64_t batch) {
  std::vector<int64_t> extents;
  for (const Dim& d : dims) extents.push_back(d.at(batch));
  return extents;
}

}  // namespace fluid::testing
