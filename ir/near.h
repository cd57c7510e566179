#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fluid {

/// Lists at most `max_names` of `names`, by increasing edit distance to `name`: "'conv0.w',
/// 'conv0.b' and 12 more". Returns "none" when `names` is empty.
std::string nearest_names(std::string_view name, std::span<const std::string> names,
                          size_t max_names);

/// Returns did_you_mean(), or if it is empty, all candidates: "; there are 'relu', 'tanh'".
std::string suggest_names(std::string_view name, std::span<const std::string> candidates);

}  // namespace fluid
