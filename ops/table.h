#pragma once

#include <span>
#include <string_view>

#include "ops/op_def.h"

namespace fluid {

/// All ops, sorted by name. The build gathers every `OpDef *_op()` in ops/*/*.cpp.
std::span<const OpDef> op_table();

/// Returns null for an unknown op.
const OpDef* find_op(std::string_view name);

/// Throws UserError with a near-miss suggestion for an unknown op.
const OpDef& op_named(std::string_view name, const Loc& loc = {});

/// The definition of an op of a verified graph. Throws InternalError for an unknown op.
const OpDef& def_of(const ir::Op& op);

/// Infers result types from operands and attributes. For sources and fused ops, returns the
/// recorded types. Throws UserError when the operands do not fit.
std::vector<Type> infer_types(const ir::Op& op);

/// Checks an op that record() did not create (an op of a parsed file): known name, operand count,
/// attributes, symbol, result types equal to the inferred types; for a fused op, also its body.
/// Throws UserError naming its location.
void verify_op(const ir::Op& op);

/// Lists errors in the definitions, one per line: a missing doc, an in-place pair out of range, a
/// required operand after an optional one, ... Empty when there are none.
std::vector<std::string> table_faults(std::span<const OpDef> ops);

/// An op lowered to a Map or a Reduce for concrete operand types.
struct Lowered {
  std::vector<Dim> out;     ///< extents of variables 0..out.size()-1: the results' shape
  std::vector<Dim> reduce;  ///< extents of the following variables; empty for a Map
  std::optional<Combine> combine;
  std::vector<Expr> bodies;  ///< a Map: one per result; a Reduce: the reduced expression
};
/// Lowers `op`, whose definition must be a Map or a Reduce.
Lowered lower_op(const ir::Op& op);
/// Lowers `op` by `def`, which need not be in the table.
Lowered lower_op(const ir::Op& op, const OpDef& def);

}  // namespace fluid
