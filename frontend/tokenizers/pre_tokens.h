#pragma once

#include <cstddef>
#include <string_view>

namespace fluid {

/// Returns the length in bytes of GPT-2's pre-token that starts at byte `at` of `text`: a match of
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// Returns 0 if the pre-token is not UTF-8.
size_t pre_token_length(std::string_view text, size_t at);

}  // namespace fluid
