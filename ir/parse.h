#pragma once

#include <memory>
#include <string_view>

#include "ir/graph.h"

namespace fluid::ir {

/// Reads the text form that print() writes (the grammar stands there); `//` starts a comment.
/// Checks the form alone: verify() says whether the program makes sense.
/// Throws UserError "file.fir:3:14: expected ')' but found ','": line and column count from 1.
std::unique_ptr<Program> parse(std::string_view text, std::string_view file_name);

}  // namespace fluid::ir
