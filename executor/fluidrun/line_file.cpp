#include "executor/fluidrun/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ir/error.h"

namespace fluid {

LineFile::LineFile(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(errno);
}

LineFile::~LineFile() { close(fd_); }

void LineFile::cut(int64_t bytes) {
  struct stat info = {};
  if (fstat(fd_, &info) != 0 || (S_ISREG(info.st_mode) && ftruncate(fd_, bytes) != 0)) fail(errno);
}

void LineFile::append(std::string_view line) {
  text_.assign(line);
  text_ += '\n';
  size_t done = 0;
  while (done < text_.size()) {
    const ssize_t n = write(fd_, text_.data() + done, text_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      const off_t end = lseek(fd_, 0, SEEK_END);
      const bool cut = done == 0 || ftruncate(fd_, end - static_cast<off_t>(done)) == 0;
      fail(cut ? error : errno);
    }
    done += static_cast<size_t>(n);
  }
}

void LineFile::fail(int error) const {
  throw UserError("cannot write '" + path_ + "': " + std::strerror(error));
}

}  // namespace fluid
