#pragma once

// Functions that passes use to rewrite graphs.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Role, location, scope and parameter of `op`, for the ops that a pass records to replace `op`.
ir::Graph::Recording recording_of(const ir::Op& op);
/// Copies the source location and the kNoAmp attribute of `op` to its replacements: the ops of
/// `graph` from position `first` on. If `op` has no location, erases the locations of the
/// replacements, because error messages must not point into Fluid's own source files.
void copy_loc_and_amp_exclusion(const ir::Op& op, ir::Graph& graph, size_t first);

/// Calls `replace` for every op in order. `replace` returns one replacement per result of the op,
/// or no values to keep the op. The replacement of a result without users may be null. Ops that
/// `replace` records are inserted before the op and are not rewritten themselves. Returns whether
/// any op was replaced.
bool rewrite_ops(ir::Graph& graph, const std::function<Values(ir::Op&)>& replace);

/// Replaces `from` by `to` in the operands of all users listed in `uses` and in the graph's
/// outputs.
void replace_all_uses(ir::Graph& graph, const Uses& uses, Value from, Value to);

/// The only user of the only result of `op`, if the user has a single result. Null if there is no
/// such user, or if the result of `op` is in `outputs`, the graph's outputs.
ir::Op* only_reader(const ir::Op& op, const Uses& uses, const std::set<Value>& outputs);
/// The only user of the only result of `op`, if the user has a single result, of the same type.
/// Null if there is no such user, or if the result of `op` is in `outputs`, the graph's outputs.
ir::Op* only_user(const ir::Op& op, const Uses& uses, const std::set<Value>& outputs);

/// The ops on which the values `roots` depend, including the ops that produce `roots`.
std::set<const ir::Op*> ancestors(const Values& roots);

/// The values of the graph outputs, in the order of Graph::outputs.
Values output_values(const ir::Graph& graph);

/// Removes the ops that are not in `live`. Returns whether any op was removed.
bool erase_all_except(ir::Graph& graph, const std::set<const ir::Op*>& live);

/// Erases the ops that no output, store, directive or collective needs. Keeps the op that declares
/// a variable if a store writes the variable, because the initialiser is an attribute of the
/// declaration. Returns whether any op was removed.
bool erase_dead_ops(ir::Graph& graph);

/// A program with copies of the ops in `chain`. The shapes are concrete for batch size `batch`, as
/// Target requires. The program begins with an `arg` op for each value that the chain reads from
/// other ops.
std::unique_ptr<ir::Program> concrete_copy(const std::vector<const ir::Op*>& chain, int64_t batch);

/// Appends copies of `ops`, with role `role`, to the graph and returns the copies. `ops` must be in
/// topological order. If an op reads a result of another op in `ops`, its copy reads the copy of
/// that result. Adds an entry result -> copy to `copies` for each result.
std::vector<const ir::Op*> append_copies(ir::Graph& graph, const std::vector<const ir::Op*>& ops,
                                         ir::Role role, std::map<Value, Value>& copies);

/// The parameter or state called `name`; null if there is none.
ir::Op* variable_named(const ir::Graph& graph, std::string_view name);
/// Name -> op of each parameter and state of the graph.
std::map<std::string_view, ir::Op*> variables_by_name(const ir::Graph& graph);

/// Whether `op` writes a variable.
bool is_store(const ir::Op& op);
/// Whether `op` is a collective. Collectives run in place.
bool is_collective(const ir::Op& op);

/// Moves the stores to the end of the graph. Returns the position of the first store.
size_t move_stores_last(ir::Graph& graph);

/// Moves `op` to the end of the graph.
void move_op_last(ir::Graph& graph, const ir::Op* op);

/// The `train` directive of the graph; null if there is none. Throws UserError if there are two.
ir::Op* find_directive(const ir::Graph& graph);

}  // namespace fluid
