#include "frontend/files/byte_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ir/error.h"

namespace fluid {
namespace {

// Minimum size in bytes of a memory-mapped tensor. Smaller tensors are copied to memory, because a
// mapping uses whole pages.
constexpr int64_t kMinMappedBytes = int64_t{1} << 18;

}  // namespace

Tensor ByteSource::read_tensor(DType dtype, const std::vector<int64_t>& shape,
                               int64_t offset) const {
  Tensor tensor(dtype, shape);
  read(offset, {static_cast<std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
  return tensor;
}

uint64_t ByteSource::hash(int64_t offset) const {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kHashBufferBytes, size() - offset)));
  for (; offset < size(); offset += kHashBufferBytes) {
    const std::span<std::byte> bytes(
        piece.data(), static_cast<size_t>(std::min(kHashBufferBytes, size() - offset)));
    read(offset, bytes);
    XXH3_64bits_update(&state, bytes.data(), bytes.size());
  }
  return XXH3_64bits_digest(&state);
}

void MemoryBytes::read(int64_t offset, std::span<std::byte> to) const {
  if (!to.empty()) std::memcpy(to.data(), bytes_.data() + offset, to.size());
}

std::shared_ptr<const ByteSource> load_bytes(const ByteSource& source, int64_t offset,
                                             int64_t size) {
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  source.read(offset, bytes);
  return std::make_shared<OwnedBytes>(std::move(bytes));
}

FileBytes::FileBytes(const std::string& path) : path_(path) {
  // O_NONBLOCK, so that opening a FIFO does not block.
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) fail(std::strerror(errno));
  set_size();
}

FileBytes::FileBytes(int fd, std::string path) : path_(std::move(path)), fd_(fd) { set_size(); }

void FileBytes::set_size() {
  struct stat info = {};
  if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd_);
    fail("not a regular file");
  }
  size_ = info.st_size;
  modified_ = info.st_mtim;
}

void FileBytes::check_unchanged() const {
  struct stat info = {};
  const bool is_same = fstat(fd_, &info) == 0 && info.st_size == size_ &&
                       info.st_mtim.tv_sec == modified_.tv_sec &&
                       info.st_mtim.tv_nsec == modified_.tv_nsec;
  if (!is_same) fail("it was changed while it was read");
}

FileBytes::~FileBytes() { close(fd_); }

void FileBytes::fail(const std::string& why) const {
  throw UserError("cannot read '" + path_ + "': " + why);
}

void FileBytes::read(int64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t n = pread(fd_, to.data(), to.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(std::strerror(errno));
    if (n == 0) fail("it became shorter while it was read");
    to = to.subspan(static_cast<size_t>(n));
    offset += n;
  }
}

Tensor FileBytes::read_tensor(DType dtype, const std::vector<int64_t>& shape,
                              int64_t offset) const {
  int64_t bytes = size_of(dtype);
  for (const int64_t extent : shape) bytes *= extent;
  if (bytes < kMinMappedBytes || offset % size_of(dtype) != 0)
    return ByteSource::read_tensor(dtype, shape, offset);
  const int64_t before = offset % sysconf(_SC_PAGESIZE);
  const auto length = static_cast<size_t>(before + bytes);
  void* pages = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_, offset - before);
  if (pages == MAP_FAILED) return ByteSource::read_tensor(dtype, shape, offset);
  const std::shared_ptr<void> owner(pages, [length](void* p) { munmap(p, length); });
  return Tensor::view(dtype, shape, static_cast<std::byte*>(pages) + before, owner);
}

}  // namespace fluid
