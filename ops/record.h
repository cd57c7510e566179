#pragma once

#include "ops/table.h"

namespace fluid {

/// Appends an op `name` to `graph` and returns its results. Fills in default attributes, checks
/// operands and attributes, and infers the result types. UserErrors name the location of
/// graph.recording if it is set, else `loc`.
Values record(ir::Graph& graph, std::string_view name, std::vector<Value> operands, Attrs attrs,
              const Loc& loc);

/// Returns the graph of the first operand. Throws UserError, which names `op`, if there are no
/// operands or if an operand is null.
ir::Graph& graph_of(const Values& operands, std::string_view op, const Loc& loc);

/// Fills in the default attributes of an op of a parsed file, as record() does for recorded ops.
/// Throws UserError for unknown attributes.
void fill_default_attrs(ir::Op& op);
/// Calls fill_default_attrs() for each op. A random op without a stream gets the stream of its id,
/// or a higher one if another op of the graph has that stream.
void fill_default_attrs(ir::Graph& graph);

/// Records a source op (`data`, `param` or `state`) and returns its value. `symbol` is the unique
/// name of the buffer.
Value record_source(ir::Graph& graph, std::string_view op, std::string symbol, Type type,
                    Attrs attrs, const Loc& loc);

/// Records an op that assigns `value` to the variable `symbol` at the end of the step.
void record_store(ir::Graph& graph, std::string symbol, Value value, const Loc& loc);

}  // namespace fluid
