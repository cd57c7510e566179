#pragma once

// Helpers that define the ops of this folder: source ops, whose result is a named buffer, and ops
// that store a value to such a buffer.

#include "ops/op_def.h"

namespace fluid {

/// OpDef of a source op: it has no operands, and its result has the type given to record_source().
/// Its cost is zero; it has no gradient.
OpDef source_def(std::string name, std::string doc, std::vector<AttrDef> attrs);

/// OpDef of a source op that is a variable (`param` or `state`). The op accepts the attributes of
/// the variable's initialiser.
OpDef variable_def(std::string name, std::string doc);

/// OpDef of an op without results that stores its operand for a later step or micro-batch.
/// `operand_doc` is the documentation of the operand.
OpDef store_def(std::string name, std::string doc, std::string operand_doc,
                std::vector<AttrDef> attrs);

}  // namespace fluid
