#pragma once

#include <string>

#include "ir/graph.h"

namespace fluid::ir {

/// Returns the text form (.fir) of the program. Parsing the text and printing the result gives the
/// same text.
///
///   program @mlp {
///     %x = data "image" {scale = 0.1} : f32[?, 784]
///     %w = param "fc0.w" : f32[784, 10]
///     %y = matmul(%x, %w) : f32[?, 10]  @ "mnist.cpp:13"
///     %0 = mul(%y, %y) : f32[?, 10]  [backward, param "fc0.w", scope "fc0", #12]
///     output "prob" = %y
///     graph @body { ... }
///   }
///
/// The statements of `main` are in the program itself; other graphs are blocks. Brackets hold the
/// role, the parameter of a gradient, the scope and the id. The role forward is omitted, and so is
/// an id that is the previous op's id plus 1. `@` precedes the name of the source file, without
/// directories, and the line. Values whose names are unique identifiers keep their names; unnamed
/// values are numbered. An empty list prints as ints[], floats[] or strings[].
std::string print(const Program& program);

/// Like print(), but names an unnamed value after its op and the op's id, for example `%relu_7`.
/// Ops that a pass does not change keep their names, so that the texts before and after the pass
/// can be compared. The text omits ids, so parse() assigns new ones.
std::string print_by_id(const Program& program);

/// Prints one graph as a block: `graph @main { ... }`.
std::string print(const Graph& graph);

/// Prints an attribute's value: `0.1`, `"adam"`, `[1, 2]`, `@body`.
std::string print(const Attr& attr);

}  // namespace fluid::ir
