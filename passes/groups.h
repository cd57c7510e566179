#pragma once

#include <map>
#include <vector>

#include "passes/fusion.h"

namespace fluid {

/// Stores the groups as attributes of the ops. Attribute `group` is the index of the op's group in
/// execution order. Attribute `group_results` lists, for each result of the op, its index among the
/// results of the kernel, or -1 if only the kernel reads it. Sorts the ops by group. Erases ops
/// without a group.
void mark_groups(ir::Graph& graph, const std::vector<FusionGroup>& groups);

/// Returns the groups that mark_groups() stored, with only `ops`, `fusible` and `outputs` set.
/// Erases the attributes that mark_groups() set. A group whose ops have been erased is empty.
/// Throws UserError for an op without attribute `group`.
std::vector<FusionGroup> extract_groups(ir::Graph& graph);

/// Live range of a value: indices of the group that produces it and of the last group that reads
/// it.
struct LiveRange {
  int first = 0;
  int last = 0;
};
using LiveRanges = std::map<Value, LiveRange>;  // root value (see root_of()) -> its live range

/// Live ranges of the values in the transient region of the arena, for `groups` executed in order.
/// Sources, graph outputs and values stored to variables have no entry.
LiveRanges live_ranges_of(const ir::Graph& graph, const std::vector<FusionGroup>& groups);

/// Peak memory use in bytes: the maximum total size of values that are live at once.
int64_t peak_bytes(const LiveRanges& lives, int64_t batch);

/// Whether no op overwrites `v` in place, so that new users of `v` can be added. False for
/// operands and results of collectives, because collectives run in place.
bool is_never_overwritten(Value v, const Uses& uses);

/// Whether the group becomes a generated kernel. False for a group without outputs, for a single
/// Alias op, and for an op that cannot be fused, such as a library kernel or a collective.
bool is_generated(const FusionGroup& group);

}  // namespace fluid
