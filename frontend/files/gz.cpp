#include "frontend/files/gz.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

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

}  // namespace

bool is_gzipped(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, 2> magic = {};
  file.read(reinterpret_cast<char*>(magic.data()), magic.size());
  return file && magic == std::array<unsigned char, 2>{0x1f, 0x8b};
}

std::string read_maybe_gz(const std::string& path, int64_t limit) {
  errno = 0;
  const std::unique_ptr<gzFile_s, GzCloser> file(gzopen(path.c_str(), "rb"));
  if (!file) fail(path, std::strerror(errno != 0 ? errno : ENOMEM));
  gzbuffer(file.get(), kBuffer);
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
    const int n = gzread(file.get(), text.data() + used, static_cast<unsigned>(text.size() - used));
    int code = Z_OK;
    const char* why = gzerror(file.get(), &code);
    if (code == Z_ERRNO) fail(path, std::strerror(errno));
    if (n < 0 || (n == 0 && code != Z_OK && code != Z_STREAM_END)) {
      const bool cut = code == Z_BUF_ERROR;
      fail(path, cut ? "the gzip data is cut off" : std::string("damaged gzip data: ") + why);
    }
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (used == most) fail(path, "holds more than " + std::to_string(limit) + " bytes");
  }
  text.resize(used);
  return text;
}

}  // namespace fluid
