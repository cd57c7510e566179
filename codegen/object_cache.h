#pragma once

#include <functional>
#include <optional>
#include <string>

namespace fluid {

/// Compiled objects on disk, by key. Any number of threads and processes may share a directory:
/// entries appear by rename and carry their key and a checksum. Trouble with the disk never fails a
/// compile: what cannot be read is compiled again, what cannot be written is not kept. The
/// directory may hold other files, which are never touched unless they have an entry's name.
class ObjectCache {
 public:
  /// An empty directory name switches the cache off. `limit` is in bytes.
  ObjectCache(std::string directory, int64_t limit);
  /// Nothing when there is no entry, or one that is damaged (which is removed), no regular file, or
  /// of another key. Never waits, as for a FIFO's writer.
  /// A key is "k" and the digits of key_of().
  std::optional<std::string> find(const std::string& key) const;
  void put(const std::string& key, const std::string& object) const;
  /// Removes the entries unused for longest until the limit holds for the cache's own files.
  void evict() const;

  /// `listener` is told, once each, of the first entry that this process cannot use, and of the
  /// first that it cannot write: a line of text. It may be called by any thread. Without a listener
  /// nobody is told.
  static void on_trouble(std::function<void(const std::string&)> listener);

  /// 128 bits of XXH3 as 32 hexadecimal digits.
  static std::string key_of(const std::string& text);

 private:
  std::string directory_;
  int64_t limit_;
};

}  // namespace fluid
