#pragma once

#include "ops/table.h"

namespace fluid {

/// Appends op `name` to `graph`: fills in default attributes, checks operands and attributes,
/// infers result types. Throws UserError with the location of graph.recording if set, else `loc`.
Values record(ir::Graph& graph, std::string_view name, std::vector<Value> operands, Attrs attrs,
              const Loc& loc);

/// The graph of the first operand. Throws UserError naming `op` when an operand is null or there is
/// none.
ir::Graph& graph_of(const Values& operands, std::string_view op, const Loc& loc);

/// Fills in the default attributes of an op that record() did not create (an op of a parsed file).
/// Throws UserError for unknown attributes.
void complete_op(ir::Op& op);

/// Records a named place in memory: `data`, `param` or `state`. `symbol` is its unique name.
Value record_source(ir::Graph& graph, std::string_view op, std::string symbol, Type type,
                    Attrs attrs, const Loc& loc);

/// Records a write of `value` to the variable `symbol` at the end of the step.
void record_store(ir::Graph& graph, std::string symbol, Value value, const Loc& loc);

}  // namespace fluid
