#pragma once

#include <cstddef>
#include <string_view>

namespace fluid {

/// The regular expression by which a byte-level BPE tokenizer splits text into pre-tokens. Each
/// pre-token is encoded independently.
enum class PreTokens {
  /// The pattern of GPT-2, r50k_base and p50k_base:
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  gpt2,
  /// The pattern of cl100k_base:
  /// '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|
  /// \s++$|\s*[\r\n]|\s+(?!\S)|\s
  cl100k
};

/// Returns the length in bytes of the pre-token that starts at byte `at` of `text`, or 0 if the
/// bytes at `at` are not UTF-8.
size_t pre_token_length(PreTokens pattern, std::string_view text, size_t at);

}  // namespace fluid
