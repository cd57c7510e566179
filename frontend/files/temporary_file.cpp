#include "frontend/files/temporary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr size_t kBytesPerWrite = size_t{256} << 10;

/// The directory of temporary files. Throws UserError if it is missing.
std::filesystem::path temporary_directory() {
  std::error_code error;
  std::filesystem::path directory = std::filesystem::temp_directory_path(error);
  if (!error) return directory;
  const char* named = std::getenv("TMPDIR");
  throw UserError("no directory of temporary files" +
                  (named == nullptr ? "" : " '" + std::string(named) + "'") + ": " +
                  error.message() + "; set TMPDIR to one that exists");
}

}  // namespace

TemporaryFile::TemporaryFile() : path_((temporary_directory() / "fluid-data-XXXXXX").string()) {
  fd_ = mkostemp(path_.data(), O_CLOEXEC);
  if (fd_ < 0) fail();
  unlink(path_.c_str());
}

TemporaryFile::~TemporaryFile() {
  if (fd_ >= 0) close(fd_);
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

void TemporaryFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail();
    bytes = bytes.subspan(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
}

void TemporaryFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno != EINTR) fail();
    const auto count = std::max<ssize_t>(written, 0);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

std::shared_ptr<const ByteSource> TemporaryFile::release() {
  return std::make_shared<FileBytes>(std::exchange(fd_, -1), path_);
}

void TemporaryFile::fail() const {
  throw UserError("cannot write the temporary file '" + path_ + "': " + std::strerror(errno) +
                  "; TMPDIR names its directory");
}

void SpillBuffer::append(std::span<const std::byte> bytes) {
  const size_t size = bytes_.size() + bytes.size();
  if (size > bytes_.capacity()) {  // doubles the capacity, at most to the size that causes a flush
    const auto most = std::max(static_cast<size_t>(memory_limit_), kBytesPerWrite);
    bytes_.reserve(std::max(size, std::min(2 * bytes_.capacity(), most)));
  }
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  const bool spills = file_ != nullptr ? bytes_.size() >= kBytesPerWrite
                                       : static_cast<int64_t>(bytes_.size()) > memory_limit_;
  if (spills) flush();
}

void SpillBuffer::flush() {
  if (file_ == nullptr) file_ = std::make_unique<TemporaryFile>();
  file_->append(bytes_);
  bytes_.clear();
  if (bytes_.capacity() > 2 * kBytesPerWrite) bytes_ = {};
}

std::shared_ptr<const ByteSource> SpillBuffer::release() {
  if (file_ == nullptr) return std::make_shared<OwnedBytes>(std::move(bytes_));
  flush();
  return file_->release();
}

}  // namespace fluid
