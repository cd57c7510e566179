#pragma once

// Definitions that the ops of this folder share: values that no op computes, and where values go.

#include "ops/op_def.h"

namespace fluid {

/// OpDef without operands whose result has the recorded type. It costs nothing and has no gradient.
OpDef source(std::string name, std::string doc, std::vector<AttrDef> attrs);

/// Such an OpDef of a variable, known by its symbol. Takes the attributes of its initialiser.
OpDef variable(std::string name, std::string doc);

/// OpDef of one operand and no result, which is kept beyond the step or micro-batch.
OpDef sink(std::string name, std::string doc, std::string operand, std::vector<AttrDef> attrs);

}  // namespace fluid
