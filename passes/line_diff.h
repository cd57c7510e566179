#pragma once

#include <string>
#include <string_view>

namespace fluid {

/// The lines of `after` that are not in `before`, marked '+', and those gone, marked '-', in order.
/// Lines that only moved count as gone and new. Empty when the texts are equal.
std::string line_diff(std::string_view before, std::string_view after);

}  // namespace fluid
