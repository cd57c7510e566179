#pragma once

// Helpers that define source ops, whose result is a named buffer, and ops that store a value to a
// named buffer.

#include "ops/op_def.h"

namespace fluid {

/// OpDef of a source op. A source op has no operands, no gradient and zero cost. Its result has the
/// type given to record_source().
OpDef source_def(std::string name, std::string doc, std::vector<AttrDef> attrs);

/// OpDef of a source op that is a variable (`param` or `state`). The op accepts the attributes of
/// the variable's initialiser.
OpDef variable_def(std::string name, std::string doc);

/// OpDef of an op without results that stores its operand for a later step or micro-batch.
/// `operand_doc` is the documentation of the operand.
OpDef store_def(std::string name, std::string doc, std::string operand_doc,
                std::vector<AttrDef> attrs);

}  // namespace fluid
