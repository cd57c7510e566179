#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fluid {

/// Optimal string alignment distance: insertion, deletion, substitution and transposition of
/// adjacent characters cost 1 each.
size_t edit_distance(std::string_view a, std::string_view b);

/// Lists at most `max_names` of `names`, by increasing edit distance to `name`: "'conv0.w',
/// 'conv0.b' and 12 more". Returns "none" when `names` is empty.
std::string nearest_names(std::string_view name, std::span<const std::string> names,
                          size_t max_names);

/// Returns did_you_mean(), or if it is empty, all candidates: "; there are 'relu', 'tanh'".
std::string suggest_names(std::string_view name, std::span<const std::string> candidates);

}  // namespace fluid
