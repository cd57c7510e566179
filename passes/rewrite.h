#pragma once

// Tools that several passes share.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// What ops recorded in the place of `op` inherit: its role, location, scope and parameter.
ir::Graph::Recording recording_of(const ir::Op& op);
/// Gives the ops from position `first` on, made for `op`, its location and the mark of NoAmp: of an
/// op from nowhere the parts are from nowhere too, not from the line of Fluid that makes them.
void take_place_of(const ir::Op& op, ir::Graph& graph, size_t first);

/// Visits every op in order. `replace` may record ops into the graph, which land just before the
/// visited op, and returns one value a result to use instead, or nothing to keep the op.
/// Recorded ops are not visited. A null value is allowed for a result that nobody reads.
/// Returns whether anything was replaced.
bool rewrite_ops(ir::Graph& graph, const std::function<Values(ir::Op&)>& replace);

/// Lets the ops that `uses` names, and the graph's outputs, read `to` in the place of `from`.
void redirect(ir::Graph& graph, const Uses& uses, Value from, Value to);

/// The ops that `roots` depend on, the roots' own ops included.
std::set<const ir::Op*> ancestors(const Values& roots);

/// What leaves the graph, in the order of its outputs.
Values output_values(const ir::Graph& graph);

/// Removes the ops that are not in `live`. Returns whether there were any.
bool keep_only(ir::Graph& graph, const std::set<const ir::Op*>& live);

/// A copy of `chain` with the batch made a number, as a Target wants it: the values it reads from
/// outside are `arg` ops, which come first; then the ops of the chain, in order.
std::unique_ptr<ir::Program> concrete_copy(const std::vector<const ir::Op*>& chain, int64_t batch);

/// Copies of `ops`, each after those it reads, in that order: appended to the graph, with `role`,
/// reading each other. `copies` gets what stands for each result.
std::vector<const ir::Op*> append_copies(ir::Graph& graph, const std::vector<const ir::Op*>& ops,
                                         ir::Role role, std::map<Value, Value>& copies);

/// The parameter or state of that name; null when there is none.
ir::Op* variable_named(const ir::Graph& graph, std::string_view name);
/// The parameters and states of a graph.
std::map<std::string_view, ir::Op*> variables_by_name(const ir::Graph& graph);

/// Whether `op` writes a variable.
bool is_store(const ir::Op& op);
/// Whether it is done together with the other processes, in the memory of its operands.
bool is_exchange(const ir::Op& op);

/// Moves the stores behind all other ops. Returns the position of the first.
size_t move_stores_last(ir::Graph& graph);

/// Moves `op` behind all other ops.
void move_last(ir::Graph& graph, const ir::Op* op);

/// The one directive (`train`) of the graph; null when there is none. UserError when there are two.
ir::Op* find_directive(const ir::Graph& graph);

}  // namespace fluid
