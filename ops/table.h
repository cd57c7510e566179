#pragma once

#include <span>
#include <string_view>

#include "ops/op_def.h"

namespace fluid {

/// Returns the definitions of all ops, sorted by name. The build gathers all functions `OpDef
/// *_op()` in ops/*/*.cpp.
std::span<const OpDef> op_table();

/// Returns the definition of op `name`, or null for an unknown op.
const OpDef* find_op(std::string_view name);

/// Returns the definition of op `name`. Throws UserError with a did-you-mean suggestion for an
/// unknown op.
const OpDef& op_named(std::string_view name, const Loc& loc = {});

/// Returns the definition of an op of a verified graph. Throws InternalError for an unknown op.
const OpDef& def_of(const ir::Op& op);
/// Whether the result of `op` shares the memory of its operand.
bool is_alias(const ir::Op& op);

/// Infers the result types of an op from its operands and attributes. For a scan, infers them from
/// its body. For sources and fused ops, returns the recorded types. Throws UserError for invalid
/// operands.
std::vector<Type> infer_types(const ir::Op& op);

/// Checks an op that record() did not create, such as an op of a parsed file. Checks the name, the
/// number of operands, the attributes and the symbol, and that the result types equal the inferred
/// types. Also checks the body of a fused op or a scan. Throws UserError with the op's location.
void verify_op(const ir::Op& op);

/// Returns the errors in the definitions `ops`, one per string. Examples are a missing doc, an
/// in-place pair out of range, and a required operand after an optional one. Empty if there are no
/// errors.
std::vector<std::string> op_table_errors(std::span<const OpDef> ops);

/// An op lowered to a Map or a Reduce for concrete operand types.
struct Lowered {
  std::vector<Dim> out;  ///< shape of the results: extents of loop variables 0 to out.size() - 1
  /// Extents of the reduction variables, numbered from out.size(); empty for a Map.
  std::vector<Dim> reduce;
  std::optional<Combine> combine;
  /// Map: one expression per result; Reduce: one expression, whose value is reduced.
  std::vector<Expr> bodies;
};
/// Lowers `op` by its definition in the table, which must be a Map or a Reduce.
Lowered lower_op(const ir::Op& op);
/// Lowers `op` with the definition `def`, which need not be in the table.
Lowered lower_op(const ir::Op& op, const OpDef& def);

}  // namespace fluid
