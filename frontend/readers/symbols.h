#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "frontend/files/byte_source.h"

namespace fluid {

/// The symbols of a text, in memory or in a file. `Symbol` is a byte or the id of a token.
template <class Symbol>
class Symbols {
 public:
  explicit Symbols(std::vector<Symbol> list)
      : list_(std::move(list)), count_(static_cast<int64_t>(list_.size())) {}
  /// The first `count` symbols of `file`, which are read on demand.
  Symbols(std::shared_ptr<const ByteSource> file, int64_t count)
      : file_(std::move(file)), count_(count) {}

  int64_t size() const { return count_; }
  int64_t resident_bytes() const { return static_cast<int64_t>(list_.size() * sizeof(Symbol)); }
  /// Copies to.size() symbols from index `first` on. The range must be within size().
  void read(int64_t first, std::span<Symbol> to) const {
    first += begin_;
    if (file_ != nullptr) {
      file_->read(first * static_cast<int64_t>(sizeof(Symbol)), std::as_writable_bytes(to));
    } else {
      std::memcpy(to.data(), list_.data() + first, to.size_bytes());
    }
  }
  /// Keeps only the `count` symbols from index `first` on.
  void keep(int64_t first, int64_t count) {
    begin_ += first;
    count_ = count;
    if (file_ != nullptr) return;
    list_.erase(list_.begin(), list_.begin() + begin_);
    list_.resize(static_cast<size_t>(count));
    begin_ = 0;
  }

 private:
  std::vector<Symbol> list_;
  std::shared_ptr<const ByteSource> file_;
  int64_t begin_ = 0, count_ = 0;
};

}  // namespace fluid
