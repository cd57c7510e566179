#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// Line diff of two texts, without context lines: '-' before each line that only `before` has, '+'
/// before each line that only `after` has. A moved line is both removed and added. "" if the texts
/// are equal.
std::string line_diff(std::string_view before, std::string_view after);

}  // namespace fluid
