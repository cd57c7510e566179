#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace fluid {

/// Bytes that are read in pieces, so that a file need not fit into memory twice.
class ByteSource {
 public:
  /// Bytes that hash() holds at a time.
  static constexpr int64_t kPiece = int64_t{1} << 20;

  virtual ~ByteSource() = default;
  virtual int64_t size() const = 0;
  /// Copies the bytes from `at` on, which must be there.
  virtual void read(int64_t at, std::span<std::byte> to) const = 0;
  /// The tensor whose elements lie at `at`.
  virtual Tensor tensor(DType dtype, const std::vector<int64_t>& shape, int64_t at) const;

  /// The XXH3 hash of the bytes from `at` on.
  uint64_t hash(int64_t at = 0) const;
};

/// Bytes in memory that outlive it.
class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view bytes) : bytes_(bytes) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  void read(int64_t at, std::span<std::byte> to) const override;

 private:
  std::string_view bytes_;
};

/// A regular file. Large tensors are mapped, copy on write: they take memory as they are read,
/// which the system may take back, until the last copy of the Tensor goes. All throw UserError
/// naming `path` where the system refuses.
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
