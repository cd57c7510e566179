#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fluid {

/// Lists the options that differ between `before` and `now`, with both values: "lr 0.1 (was 0.2),
/// seed 1 (was none)". Returns "" when the maps are equal. `old_label`: the word printed before an
/// old value, such as "was".
std::string describe_changes(const std::map<std::string, std::string>& before,
                             const std::map<std::string, std::string>& now,
                             std::string_view old_label = "was");

}  // namespace fluid
