#pragma once

#include "ops/table.h"

namespace fluid {

/// Appends op `name` to `graph`: fills in default attributes, checks operand count and attribute
/// names and kinds, infers the result types. Throws UserError naming the recording state's location
/// when that has one, else `loc`.
Values record(ir::Graph& graph, std::string_view name, std::vector<Value> operands, Attrs attrs,
              const Loc& loc);

/// The graph that the first operand lives in. Throws UserError naming `op` when an operand is null.
ir::Graph& graph_of(const Values& operands, std::string_view op, const Loc& loc);

/// Fills in the default attributes of an op that did not come through record() (a parsed file).
/// Throws UserError for attributes the op does not have.
void complete_op(ir::Op& op);

/// A place in memory with a name: `data`, `param` or `state` (symbol = its name, unique).
Value record_source(ir::Graph& graph, std::string_view op, std::string symbol, Type type,
                    Attrs attrs, const Loc& loc);

/// Writes `value` into the variable `symbol` at the end of the step.
void record_store(ir::Graph& graph, std::string symbol, Value value, const Loc& loc);

}  // namespace fluid
