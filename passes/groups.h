#pragma once

#include <map>
#include <vector>

#include "passes/fusion.h"

namespace fluid {

/// Marks groups in the graph: every op gets its group's position in the order of execution, and an
/// op of a kernel the positions of its results among the kernel's (-1: read in the kernel alone).
/// Puts the ops in the groups' order. Ops in no group are removed.
void mark_groups(ir::Graph& graph, const std::vector<FusionGroup>& groups);

/// Reads the marks of mark_groups() and removes them from the ops. Sets `ops`, `fusible` and
/// `outputs` of the groups. A group may be empty, if its ops are gone. Throws
/// UserError for an op without marks.
std::vector<FusionGroup> extract_groups(ir::Graph& graph);

/// Positions of the first and the last group that use a value.
struct LiveRange {
  int first = 0;
  int last = 0;
};
using LiveRanges = std::map<Value, LiveRange>;  // by root value

/// Lifetimes of the values in the transient region if `groups` run in their order. Excludes
/// sources, outputs and stored values.
LiveRanges live_ranges_of(const ir::Graph& graph, const std::vector<FusionGroup>& groups);

/// Peak of the bytes that are live at once.
int64_t peak_of(const LiveRanges& lives, int64_t batch);

/// Whether later groups may still read `v`, even at the end of the step. False for operands and
/// results of collectives, which are overwritten in place.
bool stays_intact(Value v, const Uses& uses);

/// Whether code is generated for the group. False for a lone alias.
bool is_generated(const FusionGroup& group);

}  // namespace fluid
