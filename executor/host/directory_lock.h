#pragma once

#include <string>

namespace fluid {

/// Locks a directory against other processes and threads for the lifetime of the object. Does
/// nothing on a file system without locks, and if there is no such directory.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;

 private:
  int fd_;
};

}  // namespace fluid
