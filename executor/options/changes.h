#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fluid {

/// "lr 0.1 (was 0.2), seed 1 (was 0)": the options of both that differ, and those that only one
/// has; "" when there is none. `other` stands before what `before` has.
std::string changes(const std::map<std::string, std::string>& before,
                    const std::map<std::string, std::string>& now, std::string_view other = "was");

}  // namespace fluid
