#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// Lines only in `after`, marked '+', and lines only in `before`, marked '-', in order. A moved
/// line counts as removed and added. Empty for equal texts.
std::string line_diff(std::string_view before, std::string_view after);

}  // namespace fluid
