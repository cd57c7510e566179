#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "frontend/readers/symbols.h"
#include "ir/atomic_file.h"

namespace fluid {

/// Writes token ids to a file as i32. A footer holds the number of ids, the key and a magic number,
/// of 8 bytes each. All numbers are little-endian. commit() replaces the file `path`. Throws
/// UserError naming the path on a system error.
class TokenFileWriter {
 public:
  /// `key`: identifies the text and the tokenizer.
  TokenFileWriter(const std::string& path, uint64_t key) : file_(path), key_(key) {}

  void append(std::span<const int32_t> ids);
  void commit();

 private:
  AtomicFile file_;
  uint64_t key_;
  int64_t count_ = 0;
};

/// Opens the token ids in the file `path`. Returns nullopt if there is no such file, or if it has
/// another key. Throws UserError if it is a file of another kind, or damaged.
std::optional<Symbols<int32_t>> open_token_file(const std::string& path, uint64_t key);

}  // namespace fluid
