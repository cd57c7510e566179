#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "frontend/files/byte_source.h"

namespace fluid {

/// The symbols of a text, in memory or in a file. `Symbol` is a byte or the id of a token.
template <class Symbol>
class Symbols {
 public:
  /// The first `count` symbols of `bytes`, which are read on demand.
  Symbols(std::shared_ptr<const ByteSource> bytes, int64_t count)
      : bytes_(std::move(bytes)), count_(count) {}
  explicit Symbols(std::shared_ptr<const ByteSource> bytes)
      : Symbols(bytes, bytes->size() / kSymbolBytes) {}

  int64_t size() const { return count_; }
  int64_t resident_bytes() const { return bytes_->resident_bytes(); }
  /// Copies to.size() symbols from index `first` on. The range must be within size().
  void read(int64_t first, std::span<Symbol> to) const {
    bytes_->read((begin_ + first) * kSymbolBytes, std::as_writable_bytes(to));
  }
  /// Keeps only the `count` symbols from index `first` on.
  void narrow(int64_t first, int64_t count) {
    begin_ += first;
    count_ = count;
    if (bytes_->resident_bytes() == 0) return;
    bytes_ = load_bytes(*bytes_, begin_ * kSymbolBytes, count * kSymbolBytes);
    begin_ = 0;
  }

 private:
  static constexpr auto kSymbolBytes = static_cast<int64_t>(sizeof(Symbol));

  std::shared_ptr<const ByteSource> bytes_;
  int64_t begin_ = 0, count_ = 0;
};

}  // namespace fluid
