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

/// A byte-level BPE (Sennrich et al. 2016, Radford et al. 2019).
class Bpe {
 public:
  /// Reads the files of Hugging Face in a directory: `vocab.json` holds the token ids, and
  /// `merges.txt` the merges in the order of their ranks. Text is split by PreTokens::gpt2. Throws
  /// UserError, which names the file, if a file is missing or damaged, or if a byte or a merge has
  /// no token.
  explicit Bpe(const std::string& directory);
  /// Reads a file of tiktoken. A line holds a token in base64 and its rank, which is also its id.
  /// Two tokens merge if the file has the token that they form. Throws UserError, which names the
  /// line, if the file is damaged, or if a byte has no token.
  Bpe(const std::string& file, PreTokens pattern);

  /// Returns the id of a token, spelled as in vocab.json. Throws UserError if there is none.
  int32_t id(const std::string& token) const;
  /// Appends the token ids of `text`. Does not recognize special tokens. If `text` is not UTF-8,
  /// throws UserError "<source_name>: ..." with the byte offset. `first_byte`: offset of `text`.
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
  bool keeps_tokens_ = false;  // whether a pre-token that is a token is encoded without merges
  std::unordered_map<std::string, int32_t> ids_;  // key: bytes, or their spelling in vocab.json
  std::array<int32_t, 256> byte_ids_ = {};
  std::unordered_map<uint64_t, Merge> merges_;  // key: the token ids of the pair
};

}  // namespace fluid
