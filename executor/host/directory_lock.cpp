#include "executor/host/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace fluid {

DirectoryLock::DirectoryLock(const std::string& directory)
    : fd_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ >= 0) flock(fd_, LOCK_EX);
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace fluid
