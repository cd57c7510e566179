#pragma once

#include <span>
#include <string_view>

#include "ops/op_def.h"

namespace fluid {

/// All ops, sorted by name. Gathered by the build from every `OpDef *_op()` in ops/*/*.cpp.
std::span<const OpDef> op_table();

/// Null when there is no such op.
const OpDef* find_op(std::string_view name);

/// Throws UserError with a near-miss suggestion when there is no such op.
const OpDef& op_named(std::string_view name, const Loc& loc = {});

/// The definition of an op of a verified graph.
const OpDef& def_of(const ir::Op& op);

/// The op lowered to a Map or a Reduce for its types: loop extents and bodies.
struct Lowered {
  std::vector<Dim> out;      ///< extents of variables 0..out.size()-1: the results' shape
  std::vector<Dim> reduce;   ///< extents of the following variables; empty for a Map
  std::optional<Combine> combine;
  std::vector<Expr> bodies;  ///< a Map: one a result; a Reduce: the one reduced expression
};
/// `op` must lower to a Map or a Reduce.
Lowered lower_op(const ir::Op& op);

}  // namespace fluid
