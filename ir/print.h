#pragma once

#include <string>

#include "ir/graph.h"

namespace fluid::ir {

/// The text form (.fir), which parse() reads back; print-parse-print is the identity.
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
/// The statements of `main` stand in the program itself, other graphs in blocks. In brackets: the
/// role unless forward, the parameter that a gradient belongs to, the scope, and the id where it is
/// not one more than the op's before. `@` gives the last component of the source file, and the
/// line. Values keep their names where these are identifiers and unique; unnamed ones are numbered.
/// An empty list prints as ints[], floats[] or strings[].
std::string print(const Program& program);

/// The same for comparing what passes did: an unnamed value is called after its op and the op's id,
/// `%relu_7`, which no pass changes elsewhere. Parses, but to other ids: they stand in no bracket.
std::string print_by_id(const Program& program);

/// One graph as a block: `graph @main { ... }`.
std::string print(const Graph& graph);

/// One attribute's value: `0.1`, `"adam"`, `[1, 2]`, `@body`.
std::string print(const Attr& attr);

}  // namespace fluid::ir
