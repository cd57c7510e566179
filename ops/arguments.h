#pragma once

// Checks of an op's operands and attributes against its definition, shared by record() and
// verify_op().

#include "ops/op_def.h"

namespace fluid {

std::vector<Type> operand_types(const std::vector<Value>& operands);
std::vector<Type> result_types(const ir::Op& op);
/// Shapes and dtypes alone: what an op computes does not depend on how its tensors lie in memory.
Type without_layout(Type type);
std::vector<Type> without_layouts(std::vector<Type> types);
/// "(f32[2], i64[])".
std::string text_of(const std::vector<Type>& types);

/// What passes note on ops of any kind: where results lie, who computes them, what they are part
/// of.
bool is_stage_attribute(std::string_view name);

/// Throws UserError unless `def` takes this many operands.
void check_arity(const OpDef& def, const std::vector<Value>& operands, const Loc& loc);

/// Throws UserError for an attribute that `def` does not have (unless it is open) or that is of
/// another kind, and for a required one that is missing.
void check_attrs(const OpDef& def, const Attrs& attrs, const Loc& loc);

/// Throws UserError unless a source may be declared so: no variable's shape depends on the batch,
/// and its initialiser can make it.
void check_source(const OpDef& def, const std::string& symbol, const Type& type, const Attrs& attrs,
                  const Loc& loc);

/// `given` with defaults filled in, in the order of the definition, an int given for a float made
/// one; then checked. Ops with open attributes get no defaults.
Attrs complete_attrs(const OpDef& def, const Attrs& given, const Loc& loc);

}  // namespace fluid
