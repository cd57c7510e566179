#pragma once

// Functions for record() and verify_op() that check the operands and attributes of an op against
// its OpDef.

#include "ops/op_def.h"

namespace fluid {

/// Return the types of the operands or results of an op.
std::vector<Type> operand_types(const std::vector<Value>& operands);
std::vector<Type> result_types(const ir::Op& op);
/// Returns the type without its memory layout. Type inference does not depend on layouts.
Type without_layout(Type type);
std::vector<Type> without_layouts(std::vector<Type> types);
/// Prints types as "(f32[2], i64[])".
std::string to_string(const std::vector<Type>& types);

/// Whether `name` is an attribute that a compiler pass may set on an op of any kind: arena,
/// workspace, kernel, error_sync, ...
bool is_pass_attribute(std::string_view name);

/// Throws UserError when the number of operands does not match `def`.
void check_arity(const OpDef& def, const std::vector<Value>& operands, const Loc& loc);

/// Throws UserError for an unknown attribute (unless `def.open_attrs` allows unknown ones), an
/// attribute of the wrong type, or a missing required attribute.
void check_attrs(const OpDef& def, const Attrs& attrs, const Loc& loc);

/// Throws UserError for a source op (data, param, state) with an invalid declaration: a negative
/// dimension, a variable whose shape depends on the batch size or the symbolic length, or an
/// initialiser that rejects the type.
void check_source(const OpDef& def, const std::string& symbol, const Type& type, const Attrs& attrs,
                  const Loc& loc);

/// Returns the attributes in the order of `def`, with ints converted to floats where `def` declares
/// a float. Fills in defaults unless `def.open_attrs` is set. Throws the errors of check_attrs().
Attrs complete_attrs(const OpDef& def, const Attrs& given, const Loc& loc);

}  // namespace fluid
