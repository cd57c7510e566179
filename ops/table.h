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

/// The result types that follow from the op's operands and attributes. Sources and fused ops have
/// no such rule: theirs are the recorded ones. Throws UserError when the operands do not fit.
std::vector<Type> infer_types(const ir::Op& op);

/// Checks an op that did not come through record() (a parsed file): known op, operand count,
/// attributes, symbol, and result types equal to the inferred ones; a fused op fits its body.
/// Throws UserError naming its location.
void verify_op(const ir::Op& op);

/// What is wrong with the definitions themselves (a default of the wrong kind, an in-place pair out
/// of range, an optional operand before a needed one, ...), one line a finding; empty when nothing.
std::vector<std::string> table_faults(std::span<const OpDef> ops);

/// The op lowered to a Map or a Reduce for its types: loop extents and bodies.
struct Lowered {
  std::vector<Dim> out;     ///< extents of variables 0..out.size()-1: the results' shape
  std::vector<Dim> reduce;  ///< extents of the following variables; empty for a Map
  std::optional<Combine> combine;
  std::vector<Expr> bodies;  ///< a Map: one a result; a Reduce: the one reduced expression
};
/// `op` must lower to a Map or a Reduce.
Lowered lower_op(const ir::Op& op);
/// The same by a definition that need not be the table's.
Lowered lower_op(const ir::Op& op, const OpDef& def);

}  // namespace fluid
