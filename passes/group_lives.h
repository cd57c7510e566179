#pragma once

#include <map>
#include <vector>

#include "passes/fusion.h"

namespace fluid {

/// The positions of the groups that hold a value first and last.
struct Life {
  int first = 0;
  int last = 0;
};
using Lives = std::map<Value, Life>;  // by root

/// Of what lies in the transient region while `groups` run in their order: neither sources, outputs
/// nor what is stored.
Lives lives_of(const ir::Graph& graph, const std::vector<FusionGroup>& groups);

/// The most bytes that are held at a time.
int64_t peak_of(const Lives& lives, int64_t batch);

/// Whether groups that follow may read `v`, which is in none of them, at the end of the step too:
/// what processes exchange is overwritten where it lies.
bool stays_as_it_is(Value v, const Uses& uses);

/// Whether the group becomes a generated kernel: it is more than an alias, which no code computes.
bool is_generated(const FusionGroup& group);

}  // namespace fluid
