#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>

#include "ir/graph.h"

namespace fluid::ir {

/// Where each op's name stands in a text: the offset of its first character.
using OpOffsets = std::unordered_map<const Op*, size_t>;

/// Reads the text form that print() writes (the grammar stands there); `//` starts a comment.
/// Checks the form alone: verify() says whether the program makes sense.
/// Throws UserError "file.fir:3:14: expected ')' but found ','": line and column count from 1.
/// `offsets`, when given, gets every op's place in `text`.
std::unique_ptr<Program> parse(std::string_view text, std::string_view file_name,
                               OpOffsets* offsets = nullptr);

}  // namespace fluid::ir
