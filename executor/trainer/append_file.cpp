#include "executor/trainer/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ir/error.h"

namespace fluid {

AppendFile::AppendFile(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(errno);
}

AppendFile::~AppendFile() { close(fd_); }

void AppendFile::truncate(int64_t bytes) {
  struct stat info = {};
  if (fstat(fd_, &info) != 0 || (S_ISREG(info.st_mode) && ftruncate(fd_, bytes) != 0)) fail(errno);
}

void AppendFile::append(std::string_view record) {
  size_t done = 0;
  while (done < record.size()) {
    const ssize_t n = write(fd_, record.data() + done, record.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      const off_t end = lseek(fd_, 0, SEEK_END);
      const bool truncated = done == 0 || ftruncate(fd_, end - static_cast<off_t>(done)) == 0;
      fail(truncated ? error : errno);
    }
    done += static_cast<size_t>(n);
  }
}

void AppendFile::fail(int error) const {
  throw UserError("cannot write '" + path_ + "': " + std::strerror(error));
}

}  // namespace fluid
