#pragma once

// Checks operands and attributes of an op against its OpDef. record() and verify_op() share these
// functions.

#include "ops/op_def.h"

namespace fluid {

std::vector<Type> operand_types(const std::vector<Value>& operands);
std::vector<Type> result_types(const ir::Op& op);
/// Drops the layout and keeps dtype and shape. Type inference does not depend on layouts.
Type without_layout(Type type);
std::vector<Type> without_layouts(std::vector<Type> types);
/// Prints types as "(f32[2], i64[])".
std::string text_of(const std::vector<Type>& types);

/// Whether `name` is an attribute that passes may set on any op: arena, workspace, kernel, part_of,
/// error_sync.
bool is_pass_attribute(std::string_view name);

/// Throws UserError when the number of operands does not match `def`.
void check_arity(const OpDef& def, const std::vector<Value>& operands, const Loc& loc);

/// Throws UserError for an unknown attribute (unless `def.open_attrs`), an attribute of the wrong
/// kind, or a missing required attribute.
void check_attrs(const OpDef& def, const Attrs& attrs, const Loc& loc);

/// Throws UserError when the declaration of a source is invalid: a negative dimension, a variable
/// whose shape depends on the batch, or an initialiser that rejects the type.
void check_source(const OpDef& def, const std::string& symbol, const Type& type, const Attrs& attrs,
                  const Loc& loc);

/// Returns `given` in the order of the definition, with defaults filled in and ints converted to
/// floats where the definition has a float. Then checks it as check_attrs() does. Ops with open
/// attributes get no defaults.
Attrs complete_attrs(const OpDef& def, const Attrs& given, const Loc& loc);

}  // namespace fluid
