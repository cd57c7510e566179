#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/tensor.h"

namespace fluid {

/// Random access to the bytes of a file or of memory. Reads byte ranges on demand, so that the
/// whole file need not be in memory.
class ByteSource {
 public:
  /// Maximum size in bytes of the buffer that hash() allocates.
  static constexpr int64_t kHashBufferBytes = int64_t{1} << 20;

  virtual ~ByteSource() = default;
  virtual int64_t size() const = 0;
  /// Copies the to.size() bytes at `offset` to `to`. The range must be within size().
  virtual void read(int64_t offset, std::span<std::byte> to) const = 0;
  /// Reads the tensor whose elements start at `offset`. The range must be within size().
  virtual Tensor read_tensor(DType dtype, const std::vector<int64_t>& shape, int64_t offset) const;

  /// Throws UserError if the bytes may have changed since the ByteSource was created.
  virtual void check_unchanged() const {}
  virtual int64_t resident_bytes() const { return 0; }  ///< size in bytes of contents in memory

  /// Returns the XXH3 hash of the bytes from `offset` to the end.
  uint64_t hash(int64_t offset = 0) const;
};

/// A ByteSource over bytes in memory. The bytes must outlive the ByteSource.
class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view bytes) : bytes_(bytes) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  void read(int64_t offset, std::span<std::byte> to) const override;
  int64_t resident_bytes() const override { return size(); }

 private:
  std::string_view bytes_;
};

/// A ByteSource that owns its bytes.
class OwnedBytes : public MemoryBytes {
 public:
  explicit OwnedBytes(std::vector<std::byte> bytes)
      : MemoryBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}),
        owned_(std::move(bytes)) {}

 private:
  std::vector<std::byte> owned_;
};

/// Returns the `size` bytes at `offset` of `source`, in memory.
std::shared_ptr<const ByteSource> load_bytes(const ByteSource& source, int64_t offset,
                                             int64_t size);

/// A ByteSource over a regular file. Large tensors are memory-mapped copy-on-write: the system
/// loads pages on access and may evict unmodified pages. Destroying the last copy of a Tensor
/// unmaps its memory. All members throw UserError naming `path` on a system error.
class FileBytes : public ByteSource {
 public:
  explicit FileBytes(const std::string& path);
  /// Takes ownership of the file descriptor `fd`. Messages name the file `path`, which need not
  /// exist: the file may be unlinked.
  FileBytes(int fd, std::string path);
  ~FileBytes() override;
  FileBytes(const FileBytes&) = delete;
  int64_t size() const override { return size_; }
  void read(int64_t offset, std::span<std::byte> to) const override;
  Tensor read_tensor(DType dtype, const std::vector<int64_t>& shape, int64_t offset) const override;
  /// Compares the size and the time of modification of the file.
  void check_unchanged() const override;

 private:
  void set_size();
  [[noreturn]] void fail(const std::string& why) const;

  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;
  timespec modified_ = {};
};

}  // namespace fluid
