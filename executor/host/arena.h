#pragma once

#include <cstddef>
#include <cstdint>

namespace fluid {

/// Zero-initialised host memory, aligned to 2 MiB. Backed by huge pages if the operating system
/// permits. An arena of 0 bytes has a valid address too. The constructor throws OutOfMemory if the
/// system has too little memory.
class Arena {
 public:
  Arena() = default;
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }
  int64_t resident_bytes() const;  ///< bytes that are backed by physical memory

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace fluid
