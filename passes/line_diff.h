#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// Line diff of two texts, without context lines: '-' before lines only in `before`, '+' before
/// lines only in `after`. A moved line appears twice, with '-' and with '+'. "" if the texts are
/// equal.
std::string line_diff(std::string_view before, std::string_view after);

}  // namespace fluid
