#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "executor/device/state_file.h"

namespace fluid {

/// A disk cache of precomputed weights, in the directory of the kernel cache. An entry is the
/// memory image of a range of the state region, which processes map and so share. Any number of
/// processes may share a directory: an entry is written to a temporary file and renamed. It is not
/// flushed to the disk: it contains its key and a hash of its content, which open() checks. A disk
/// error means that the weights are computed.
class WeightCache {
 public:
  /// Total size of the entries in bytes, above which the least recently used ones are removed.
  static constexpr int64_t kDefaultLimit = int64_t{4} << 30;

  /// An empty `directory` disables the cache.
  explicit WeightCache(std::string directory, int64_t limit = kDefaultLimit);

  bool is_enabled() const { return !directory_.empty(); }
  /// Opens the entry `key` of `bytes` bytes. Reads the whole entry to check its hash, on `threads`
  /// threads. Returns null if there is no such entry, and if it is damaged: such an entry is
  /// removed.
  std::shared_ptr<const StateFile> open(const std::string& key, int64_t bytes, int threads) const;
  /// Writes an entry. Does nothing if the entry is larger than half of the limit or of the free
  /// disk space.
  void store(const std::string& key, std::span<const std::byte> values, int threads) const;

 private:
  std::string path_of(const std::string& key) const;

  std::string directory_;
  int64_t limit_;
};

/// Returns the 128-bit XXH3 hash of the XXH3 hashes of each 1 MiB of `values`, as 32 hexadecimal
/// digits. Computed by `threads` threads; the result is the same for any number.
std::string hash_of_values(std::span<const std::byte> values, int threads);

}  // namespace fluid
