#include "executor/host/weight_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "codegen/cache_files.h"
#include "codegen/object_cache.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

// An entry holds kMapAlignment bytes that begin with kMagic, the key and the hash of the values,
// then the values.
constexpr std::string_view kMagic = "FLUIDWT1";
constexpr std::string_view kSuffix = ".weights";
/// Number of bytes at the end of kMagic that hold the format version. Entries of every version are
/// evicted.
constexpr size_t kVersionBytes = 1;
constexpr int64_t kHashedAtOnce = int64_t{1} << 20;
constexpr int64_t kReadAtOnce = int64_t{64} << 10;

/// Reads the to.size() bytes at `offset`. Returns false if they cannot be read.
bool read_at(int fd, int64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t n = pread(fd, to.data(), to.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to = to.subspan(static_cast<size_t>(n));
    offset += n;
  }
  return true;
}

/// Returns the hash of the hashes of all chunks of `bytes` bytes. `hash_chunk` gets the first byte
/// and the size of a chunk.
std::string hash_of_chunks(int64_t bytes, int threads,
                           const std::function<uint64_t(int64_t, int64_t)>& hash_chunk) {
  const int64_t chunks = (bytes + kHashedAtOnce - 1) / kHashedAtOnce;
  std::vector<uint64_t> hashes(static_cast<size_t>(chunks));
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i; (i = next++) < chunks;) {
      const int64_t begin = i * kHashedAtOnce;
      hashes[static_cast<size_t>(i)] = hash_chunk(begin, std::min(kHashedAtOnce, bytes - begin));
    }
  };
  run_on_threads(static_cast<size_t>(std::max<int64_t>(std::min<int64_t>(threads, chunks), 1)),
                 work);
  const auto text = std::as_bytes(std::span(hashes));
  return ObjectCache::hash_digits({reinterpret_cast<const char*>(text.data()), text.size()});
}

/// Returns the hash of the values in a file; "" if they cannot be read.
std::string hash_of_file(int fd, int64_t bytes, int threads) {
  std::atomic<bool> readable = true;
  const std::string hash = hash_of_chunks(bytes, threads, [&](int64_t begin, int64_t size) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    std::array<std::byte, kReadAtOnce> buffer;
    for (int64_t done = 0; done < size; done += kReadAtOnce) {
      const auto part = static_cast<size_t>(std::min(kReadAtOnce, size - done));
      if (!read_at(fd, kMapAlignment + begin + done, std::span(buffer).first(part)))
        readable = false;
      XXH3_64bits_update(&state, buffer.data(), part);
    }
    return XXH3_64bits_digest(&state);
  });
  return readable ? hash : "";
}

std::string header_of(const std::string& key, const std::string& hash) {
  std::string header = std::string(kMagic) + key + hash;
  header.resize(kMapAlignment, '\0');
  return header;
}

/// Whether `name` is w<32 hexadecimal digits>.weights, or that of AtomicFile's temporary file.
bool names_entry(std::string_view name) {
  constexpr size_t kKeyEnd = 33;
  return name.starts_with('w') && name.find_first_not_of("0123456789abcdef", 1) == kKeyEnd &&
         name.substr(kKeyEnd).starts_with(kSuffix);
}

bool is_entry(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  const StateFile file(fd, 0);
  std::string magic(kMagic.size() - kVersionBytes, '\0');
  return read_at(fd, 0, std::as_writable_bytes(std::span(magic))) && kMagic.starts_with(magic);
}

constexpr CacheFiles kWeightFiles = {kSuffix, names_entry, is_entry};

}  // namespace

std::string hash_of_values(std::span<const std::byte> values, int threads) {
  return hash_of_chunks(std::ssize(values), threads, [&](int64_t begin, int64_t size) {
    return XXH3_64bits(values.data() + begin, static_cast<size_t>(size));
  });
}

WeightCache::WeightCache(std::string directory, int64_t limit)
    : directory_(std::move(directory)), limit_(limit) {}

std::string WeightCache::path_of(const std::string& key) const {
  return (fs::path(directory_) / ("w" + key + std::string(kSuffix))).string();
}

std::shared_ptr<const StateFile> WeightCache::open(const std::string& key, int64_t bytes,
                                                   int threads) const {
  if (!is_enabled()) return nullptr;
  const std::string path = path_of(key);
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  auto file = std::make_shared<const StateFile>(fd, kMapAlignment);
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return nullptr;
  std::string header(kMapAlignment, '\0');
  const bool good = info.st_size == kMapAlignment + bytes &&
                    read_at(fd, 0, std::as_writable_bytes(std::span(header))) &&
                    header == header_of(key, hash_of_file(fd, bytes, threads));
  if (!good) {
    std::error_code ignored;
    fs::remove(path, ignored);
    return nullptr;
  }
  futimens(fd, nullptr);  // the time of last use, by which entries are evicted
  return file;
}

void WeightCache::store(const std::string& key, std::span<const std::byte> values,
                        int threads) const {
  if (!is_enabled()) return;
  const auto bytes = static_cast<uintmax_t>(values.size());
  std::error_code error;
  fs::create_directories(directory_, error);
  const fs::space_info disk = fs::space(directory_, error);
  if (error || bytes > disk.available / 2 || bytes > static_cast<uintmax_t>(limit_) / 2) return;
  evict_least_recently_used(directory_, limit_ - std::ssize(values) - kMapAlignment, kWeightFiles);
  try {
    AtomicFile file(path_of(key));
    file.write(header_of(key, hash_of_values(values, threads)));
    file.write(values);
    file.commit_unflushed();  // open() checks the hash
  } catch (const UserError&) {
    // The compiled kernels go to the same directory: their cache reports that it is not writable.
  }
}

}  // namespace fluid
