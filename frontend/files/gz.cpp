#include "frontend/files/gz.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <vector>

#include "frontend/files/temporary_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr unsigned kBuffer = 1 << 18;
constexpr size_t kReadSize = size_t{1} << 20;
// The largest compression ratio of deflate (zlib.net/zlib_tech.html).
constexpr size_t kMaxCompressionRatio = 1032;

struct GzCloser {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw UserError("cannot read '" + path + "': " + why);
}

/// Estimates the size of the decompressed contents of file `path`. A gzip file stores this size in
/// its last 4 bytes (RFC 1952, 2.3.1). For any other file, returns the file size.
size_t estimated_size(const std::string& path) {
  std::error_code not_a_file;
  const uintmax_t size = std::filesystem::file_size(path, not_a_file);
  if (not_a_file) return 0;
  if (!is_gzipped(path)) return size;
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, 4> last = {};
  file.seekg(-4, std::ios::end).read(reinterpret_cast<char*>(last.data()), last.size());
  const uint32_t stored_size = last[0] | last[1] << 8 | last[2] << 16 | uint32_t{last[3]} << 24;
  return std::min(uintmax_t{stored_size}, size * kMaxCompressionRatio);
}

/// The decompressed contents of a file, read in order.
class GzStream {
 public:
  explicit GzStream(const std::string& path) : path_(path) {
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) fail(path, std::strerror(errno != 0 ? errno : ENOMEM));
    gzbuffer(file_.get(), kBuffer);
  }

  /// Reads at most to.size() bytes; to.size() must be less than 2^31. Returns the number of bytes
  /// read; 0 at the end of the file.
  size_t read(std::span<std::byte> to) {
    const int n = gzread(file_.get(), to.data(), static_cast<unsigned>(to.size()));
    int code = Z_OK;
    const char* why = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) fail(path_, std::strerror(errno));
    if (n < 0 || (n == 0 && code != Z_OK && code != Z_STREAM_END)) {
      const bool cut = code == Z_BUF_ERROR;
      fail(path_, cut ? "the gzip data is cut off" : std::string("damaged gzip data: ") + why);
    }
    return static_cast<size_t>(n);
  }

 private:
  const std::string& path_;
  std::unique_ptr<gzFile_s, GzCloser> file_;
};

}  // namespace

bool is_gzipped(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, 2> magic = {};
  file.read(reinterpret_cast<char*>(magic.data()), magic.size());
  return file && magic == std::array<unsigned char, 2>{0x1f, 0x8b};
}

std::string read_gz_or_plain(const std::string& path, int64_t limit) {
  GzStream file(path);
  const size_t most = static_cast<size_t>(limit) + 1;
  std::string text;
  // The extra byte lets gzread() detect the end of the file before the buffer must grow.
  text.reserve(std::min(most, estimated_size(path) + 1));
  size_t used = 0;
  for (;;) {
    if (used == text.size()) {
      const size_t room = used < text.capacity() ? text.capacity() : used + kReadSize;
      text.resize(std::min({most, room, used + kReadSize}));
    }
    const size_t n = file.read(std::as_writable_bytes(std::span(text).subspan(used)));
    if (n == 0) break;
    used += n;
    if (used == most) fail(path, "holds more than " + std::to_string(limit) + " bytes");
  }
  text.resize(used);
  return text;
}

std::shared_ptr<const ByteSource> open_gz_or_plain(const std::string& path, int64_t memory_limit) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error) && !is_gzipped(path)) {
    return std::make_shared<FileBytes>(path);
  }
  GzStream file(path);
  SpillBuffer contents(memory_limit);
  std::vector<std::byte> piece(kReadSize);
  while (const size_t n = file.read(piece)) contents.append(std::span(piece).first(n));
  return contents.release();
}

}  // namespace fluid
