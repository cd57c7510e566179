#include "frontend/files/gz.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr unsigned kBuffer = 1 << 18;
constexpr size_t kFirst = size_t{1} << 20;
constexpr size_t kMaxRead = size_t{1} << 30;

struct GzCloser {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw UserError("cannot read '" + path + "': " + why);
}

}  // namespace

std::string read_maybe_gz(const std::string& path, int64_t limit) {
  errno = 0;
  const std::unique_ptr<gzFile_s, GzCloser> file(gzopen(path.c_str(), "rb"));
  if (!file) fail(path, std::strerror(errno != 0 ? errno : ENOMEM));
  gzbuffer(file.get(), kBuffer);
  const size_t most = static_cast<size_t>(limit) + 1;
  std::string text;
  size_t used = 0;
  for (;;) {
    if (used == text.size()) text.resize(std::min(most, std::max(kFirst, used * 2)));
    const auto wanted = static_cast<unsigned>(std::min(text.size() - used, kMaxRead));
    const int n = gzread(file.get(), text.data() + used, wanted);
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
