#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fluid {

/// "'conv0.w', 'conv0.b' and 12 more": at most `most` of the names, nearest to `name` first by edit
/// distance; "none" of no names.
std::string nearest_names(std::string_view name, std::span<const std::string> names, size_t most);

}  // namespace fluid
