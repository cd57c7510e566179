#pragma once

#include <functional>

#include "ir/graph.h"

namespace fluid::ir {

/// Checks what must hold of every program, whatever its ops mean:
/// - graphs, outputs, values and symbols have the names they need, each once; the first graph is
/// main;
/// - operands and outputs are results of earlier ops of the same graph;
/// - types have at most kMaxRank dims, at most one of them of the batch, none negative, a size in
///   bytes that a 64-bit integer counts, and a layout that fits;
/// - attributes refer to graphs that exist, and no graph contains itself;
/// - a variable is declared once (an op with a symbol and results) and written once (an op with a
///   symbol and no result).
/// Then calls `check_op`, when given, for each op in order, which may throw as well.
/// Throws UserError "net.cpp:13: matmul %y in graph main: what".
void verify(const Program& program, const std::function<void(const Op&)>& check_op = nullptr);

/// How messages name an op: "matmul %y", "data \"image\"", with the graph unless it is main.
std::string describe(const Op& op);

}  // namespace fluid::ir
