#pragma once

#include <functional>
#include <string>

#include "ir/graph.h"

namespace fluid::ir {

/// Checks the structure of a program, independently of the meaning of its ops:
/// - graphs, outputs and symbols have unique names; op and attribute names are identifiers; the
///   first graph is main;
/// - operands and outputs are results of earlier ops of the same graph;
/// - types have at most kMaxRank dims, at most one batch dim and no negative dim; their byte size
///   fits int64_t, and their layout fits the shape;
/// - attributes refer to existing graphs, and no graph contains itself;
/// - at most one op of a graph declares a variable (an op with a symbol and results), and at most
///   one op writes the variable (an op with a symbol and no results).
/// Then calls `check_op`, unless null, for each op in order. Throws UserError "net.cpp:13: matmul
/// %y in graph main: what".
void verify(const Program& program, const std::function<void(const Op&)>& check_op = nullptr);

/// Returns the reason why `type` is invalid, such as "shape [?, ?] has two batch dimensions", or
/// "".
std::string fault_of(const Type& type);

/// Returns the name of an op for messages: "matmul %y" or "data \"image\"", plus the graph unless
/// it is main.
std::string describe(const Op& op);

}  // namespace fluid::ir
