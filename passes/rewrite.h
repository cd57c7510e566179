#pragma once

// Helpers shared by several passes.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Attributes that ops recorded in place of `op` inherit: its role, location, scope and parameter.
ir::Graph::Recording recording_of(const ir::Op& op);
/// Copies the location and the kNoAmp attribute of `op` to the ops from position `first` on, which
/// replace `op`. If `op` has no location, they get none; otherwise errors would name Fluid's own
/// source.
void take_place_of(const ir::Op& op, ir::Graph& graph, size_t first);

/// Visits every op in order. `replace` may record new ops; they are inserted before the visited op
/// and are not visited. It returns one replacement per result, or nothing to keep the op. A
/// replacement may be null if the result has no reader. Returns whether any op was replaced.
bool rewrite_ops(ir::Graph& graph, const std::function<Values(ir::Op&)>& replace);

/// Replaces `from` by `to` in the operands of all readers listed in `uses` and in the graph's
/// outputs.
void redirect(ir::Graph& graph, const Uses& uses, Value from, Value to);

/// The ops on which `roots` depend, including the ops of the roots.
std::set<const ir::Op*> ancestors(const Values& roots);

/// The values of the graph's outputs, in order.
Values output_values(const ir::Graph& graph);

/// Removes the ops that are not in `live`. Returns whether any op was removed.
bool keep_only(ir::Graph& graph, const std::set<const ir::Op*>& live);

/// Copies `chain` with concrete shapes for `batch`, as Target expects. Values from outside become
/// `arg` ops, which come first. The ops of the chain follow in order.
std::unique_ptr<ir::Program> concrete_copy(const std::vector<const ir::Op*>& chain, int64_t batch);

/// Appends copies of `ops` with `role` to the graph. `ops` must be in dependency order; the copies
/// read each other. Fills `copies` with the copy of each result.
std::vector<const ir::Op*> append_copies(ir::Graph& graph, const std::vector<const ir::Op*>& ops,
                                         ir::Role role, std::map<Value, Value>& copies);

/// The parameter or state called `name`; null if there is none.
ir::Op* variable_named(const ir::Graph& graph, std::string_view name);
/// The parameters and states of the graph.
std::map<std::string_view, ir::Op*> variables_by_name(const ir::Graph& graph);

/// Whether `op` writes a variable.
bool is_store(const ir::Op& op);
/// Whether `op` is a collective. Collectives run in place.
bool is_collective(const ir::Op& op);

/// Moves the stores behind all other ops. Returns the position of the first store.
size_t move_stores_last(ir::Graph& graph);

/// Moves `op` behind all other ops.
void move_last(ir::Graph& graph, const ir::Op* op);

/// The `train` directive of the graph; null if there is none. Throws UserError if there are two.
ir::Op* find_directive(const ir::Graph& graph);

}  // namespace fluid
