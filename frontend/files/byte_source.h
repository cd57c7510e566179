#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace fluid {

/// Random access to bytes in pieces, so that memory need not hold both a file and its tensors.
class ByteSource {
 public:
  /// Size of hash()'s buffer in bytes.
  static constexpr int64_t kPiece = int64_t{1} << 20;

  virtual ~ByteSource() = default;
  virtual int64_t size() const = 0;
  /// Copies bytes from offset `at` to `to`. The caller checks that the range is within size().
  virtual void read(int64_t at, std::span<std::byte> to) const = 0;
  /// Returns the tensor whose elements start at offset `at`.
  virtual Tensor tensor(DType dtype, const std::vector<int64_t>& shape, int64_t at) const;

  /// Returns the XXH3 hash of the bytes from offset `at` to the end.
  uint64_t hash(int64_t at = 0) const;
};

/// A view of bytes in memory, which must outlive it.
class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view bytes) : bytes_(bytes) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  void read(int64_t at, std::span<std::byte> to) const override;

 private:
  std::string_view bytes_;
};

/// A regular file. Large tensors are mapped copy-on-write: their pages are loaded when read, and
/// the system may evict unmodified pages. A mapping lives until the last copy of its Tensor is
/// destroyed. All members throw UserError naming `path` on a system error.
class FileBytes : public ByteSource {
 public:
  explicit FileBytes(const std::string& path);
  ~FileBytes() override;
  FileBytes(const FileBytes&) = delete;
  int64_t size() const override { return size_; }
  void read(int64_t at, std::span<std::byte> to) const override;
  Tensor tensor(DType dtype, const std::vector<int64_t>& shape, int64_t at) const override;

 private:
  [[noreturn]] void fail(const std::string& why) const;

  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace fluid
