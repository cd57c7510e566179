#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fluid {

/// Lists the options that differ between two maps, or that only one map has: "lr 0.1 (was 0.2),
/// seed 1 (was 0)". Empty when the maps are equal. `other`: the word before values of `before`.
std::string changes(const std::map<std::string, std::string>& before,
                    const std::map<std::string, std::string>& now, std::string_view other = "was");

}  // namespace fluid
