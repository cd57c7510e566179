#include "ir/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ir/error.h"

namespace fluid {
namespace {

std::string error_text(int error) { return std::strerror(error); }

std::string unique_temporary_path(const std::string& target) {
  static std::atomic<int> count{0};
  return target + ".tmp." + std::to_string(getpid()) + "." + std::to_string(count++);
}

/// Flushes a directory's entries to the disk. Returns 0 or an errno value.
int fsync_directory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int failed = fsync(fd) != 0 ? errno : 0;
  close(fd);
  return failed;
}

[[noreturn]] void throw_cannot_write(const std::string& path, int error) {
  throw UserError("cannot write '" + path + "': " + error_text(error));
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(path) {
  std::error_code ignored;  // open() below reports the error
  const std::filesystem::path resolved = std::filesystem::canonical(path, ignored);
  if (!resolved.empty()) target_ = resolved.string();
  struct stat info = {};
  const bool exists = stat(target_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) fail(EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    fd_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    // Retries on EEXIST. The file may be left over from a crashed process with the same pid, or
    // belong to a process in another container.
    do {
      temporary_ = unique_temporary_path(target_);
      fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EEXIST);
  }
  if (fd_ < 0) {
    temporary_.clear();
    fail(errno);
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::commit_unflushed() {
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0) fail(errno);
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void AtomicFile::commit() {
  const bool renames = !temporary_.empty();
  if (renames && fsync(fd_) != 0) fail(errno);
  commit_unflushed();
  if (!renames) return;
  const std::string directory = std::filesystem::path(target_).parent_path().string();
  if (const int failed = fsync_directory(directory.empty() ? "." : directory)) fail(failed);
}

void AtomicFile::fail(int error) const { throw_cannot_write(path_, error); }

void flush_directory(const std::string& path) {
  if (const int failed = fsync_directory(path)) throw_cannot_write(path, failed);
}

void check_writable(const std::string& path) {
  // Skips pipes and devices, because the reader of a pipe would see an end of file. is_other()
  // returns false on an error.
  std::error_code ignored;
  if (!std::filesystem::is_other(path, ignored)) AtomicFile file(path);
}

void write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string read_file(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw UserError("cannot read '" + path + "': " + why);
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(error_text(errno));
  std::string text;
  struct stat info = {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    text.reserve(std::min(static_cast<size_t>(info.st_size), kMaxFileBytes) + 1);
  }
  char chunk[1 << 16];
  ssize_t n = 0;
  do {
    n = read(fd, chunk, sizeof chunk);
    if (n > 0) text.append(chunk, static_cast<size_t>(n));
  } while ((n > 0 && text.size() <= kMaxFileBytes) || (n < 0 && errno == EINTR));
  const int error = errno;
  close(fd);
  if (n < 0) fail(error_text(error));
  if (n > 0) fail("it is larger than " + std::to_string(kMaxFileBytes >> 20) + " MiB");
  return text;
}

}  // namespace fluid
