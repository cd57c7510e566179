#pragma once

#include <functional>
#include <optional>
#include <string>

namespace fluid {

/// A disk cache of compiled objects. Any number of threads and processes may share a directory:
/// entries appear by rename and carry their key and a checksum. Disk errors never fail a compile:
/// an unreadable entry is compiled again, an unwritable one is not kept. The directory may hold
/// other files. The cache touches only files named like an entry.
class ObjectCache {
 public:
  /// An empty `directory` disables the cache. `limit` is in bytes.
  ObjectCache(std::string directory, int64_t limit);
  /// Returns the object of `key`, which is "k" and the digits of key_of(). Returns nullopt if there
  /// is no valid entry: it is missing, no regular file, of another key, or damaged. A damaged entry
  /// is removed. Never blocks, for example on a FIFO.
  std::optional<std::string> find(const std::string& key) const;
  void put(const std::string& key, const std::string& object) const;
  /// Removes the least recently used entries until the cache's own files fit the limit.
  void evict() const;

  /// Sets the process's listener. It gets one line of text for the first unusable entry, and one
  /// for the first entry that cannot be written. Any thread may call it.
  static void set_error_listener(std::function<void(const std::string&)> listener);

  /// Returns the cache of compiled kernels: in `directory`, or, where that is empty, in
  /// $FLUID_KERNEL_CACHE if it is set. The variable keeps kernels alone, never a choice made by
  /// timing, so that it changes no result.
  static ObjectCache of_kernels(std::string directory, int64_t limit);

  /// Returns the 128-bit XXH3 hash of `text` as 32 hexadecimal digits.
  static std::string key_of(const std::string& text);

 private:
  std::string directory_;
  int64_t limit_;
};

}  // namespace fluid
