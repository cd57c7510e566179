#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "frontend/readers/dataset.h"
#include "frontend/readers/symbols.h"
#include "ir/atomic_file.h"

namespace fluid {

/// Writes token ids to a file as i32. The errors of bad records of the text follow, one a line, and
/// a footer of 8-byte numbers: the number of ids, of bad records, the bytes of the errors, the key
/// and a magic number. All numbers are little-endian. commit() replaces the file `path`. Throws
/// UserError naming the path on a system error.
class TokenFileWriter {
 public:
  /// `key`: identifies the text and the tokenizer.
  TokenFileWriter(const std::string& path, uint64_t key) : file_(path), key_(key) {}

  void append(std::span<const int32_t> ids);
  /// `skipped`: the bad records of the text, which are left out.
  void commit(const SkippedRecords& skipped);

 private:
  AtomicFile file_;
  uint64_t key_;
  int64_t count_ = 0;
};

struct Tokens {
  Symbols<int32_t> ids;
  SkippedRecords skipped;  ///< the bad records of the text
};

/// Opens the token ids in the file `path`. Returns nullopt if there is no such file, or if it has
/// another key. Throws UserError if it is a file of another kind, or damaged.
std::optional<Tokens> open_token_file(const std::string& path, uint64_t key);

}  // namespace fluid
