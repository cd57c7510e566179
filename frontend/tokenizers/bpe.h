#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/tokenizers/pre_tokens.h"

namespace fluid {

/// A byte-level BPE tokenizer (Sennrich et al. 2016, Radford et al. 2019).
class Bpe {
 public:
  /// Reads a Hugging Face tokenizer from a directory: the token ids from `vocab.json`, and the
  /// merges, sorted by rank, from `merges.txt`. Splits text by PreTokens::gpt2. Throws UserError
  /// that names the file if a file is missing or damaged. Also throws UserError if the vocabulary
  /// lacks one of the 256 bytes or the result of a merge.
  explicit Bpe(const std::string& directory);
  /// Reads a tiktoken file. Each line holds a token in base64 and its rank, which is also its id.
  /// Two tokens can merge if their concatenation is a token. Throws UserError if the file is
  /// damaged (the message names the line), or if one of the 256 bytes is not a token.
  Bpe(const std::string& file, PreTokens pattern);

  /// Returns the id of a token, spelled as in vocab.json, or as raw bytes for a tiktoken file.
  /// Throws UserError if the vocabulary lacks the token.
  int32_t id(const std::string& token) const;
  /// Appends the token ids of `text`. Does not recognize special tokens. If `text` is not UTF-8,
  /// throws UserError "<source_name>: ..." with the byte offset. `first_byte`: offset of `text` in
  /// its source, for this message.
  void encode(std::string_view text, const std::string& source_name, std::vector<int32_t>& ids,
              int64_t first_byte = 0) const;

 private:
  struct Merge {
    int32_t rank = 0, id = 0;
  };
  static uint64_t pair_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  void read_merges(const std::string& path);
  void read_ranks();
  void derive_merges();
  std::vector<int32_t> merge(std::string_view pre_token) const;

  std::string vocabulary_path_;
  PreTokens pattern_ = PreTokens::gpt2;
  bool ignore_merges_ = false;  // whether a pre-token in ids_ is a token without merges
  std::unordered_map<std::string, int32_t> ids_;  // key: raw bytes, or the spelling in vocab.json
  std::array<int32_t, 256> byte_ids_ = {};
  std::unordered_map<uint64_t, Merge> merges_;  // key: pair_of(left id, right id)
};

}  // namespace fluid
