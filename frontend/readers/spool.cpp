#include "frontend/readers/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "frontend/readers/array_source.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int64_t kChunkBytes = int64_t{1} << 20;  // bytes of samples per write

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

/// A temporary file that is unlinked while it is open, so that no end of the process leaves it.
class UnlinkedFile {
 public:
  UnlinkedFile() : path_((temporary_directory() / "fluid-data-XXXXXX").string()) {
    fd_ = mkostemp(path_.data(), O_CLOEXEC);
    if (fd_ < 0) fail();
    unlink(path_.c_str());
  }
  ~UnlinkedFile() {
    if (fd_ >= 0) close(fd_);
  }
  UnlinkedFile(UnlinkedFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

  void append(const void* data, int64_t size) {
    const auto* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = write(fd_, bytes, static_cast<size_t>(size));
      if (written < 0 && errno != EINTR) fail();
      bytes += std::max<ssize_t>(written, 0);
      size -= std::max<ssize_t>(written, 0);
    }
  }

  const std::string& path() const { return path_; }
  std::shared_ptr<FileBytes> release() {
    return std::make_shared<FileBytes>(std::exchange(fd_, -1), path_);
  }

 private:
  [[noreturn]] void fail() const {
    throw UserError("cannot write the temporary file '" + path_ + "': " + std::strerror(errno) +
                    "; TMPDIR names its directory");
  }

  std::string path_;
  int fd_ = -1;
};

/// Number of samples in a chunk.
int64_t chunk_of(const std::vector<Column>& columns) {
  int64_t sample = 1;
  for (const Column& column : columns) sample += column.bytes();
  return std::max<int64_t>(1, kChunkBytes / sample);
}

}  // namespace

SampleSourcePtr spool(SampleStream& stream, const StreamPass& pass, int64_t limit,
                      const DataArgs& args) {
  stream.open(pass);
  const std::vector<Column>& columns = stream.columns();
  std::vector<UnlinkedFile> files(columns.size());
  const int64_t chunk = chunk_of(columns);
  std::vector<Tensor> buffers = sample_buffers(columns, chunk);
  int64_t samples = 0;
  for (bool more = true; more;) {
    int64_t rows = 0;
    while (more && rows < chunk) {
      more = samples < limit && stream.next(rows_at(buffers, rows));
      if (more) ++rows, ++samples;
    }
    for (size_t c = 0; c < files.size(); ++c) {
      files[c].append(buffers[c].data(), rows * columns[c].bytes());
    }
  }
  std::vector<ArrayColumn> arrays;
  for (size_t c = 0; c < files.size(); ++c) {
    const std::string path = files[c].path();
    arrays.push_back(
        {.type = columns[c], .samples = samples, .file = files[c].release(), .file_name = path});
  }
  return make_array_source(std::move(arrays), args, stream.name());
}

}  // namespace fluid
