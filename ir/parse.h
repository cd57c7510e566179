#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>

#include "ir/graph.h"

namespace fluid::ir {

/// Maps each op to the offset of its name in the source text.
using OpOffsets = std::unordered_map<const Op*, size_t>;

/// Parses the text that print() returns. The grammar is in print.h; `//` starts a comment. Checks
/// syntax only; verify() checks the program. Throws UserError "file.fir:3:14: expected ')' but
/// found ','", where line and column start at 1. If `offsets` is not null, fills it with the offset
/// of every op in `text`.
std::unique_ptr<Program> parse(std::string_view text, std::string_view file_name,
                               OpOffsets* offsets = nullptr);

}  // namespace fluid::ir
