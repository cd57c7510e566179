#pragma once

#include <cstddef>
#include <cstdint>

namespace fluid {

/// Zeroed host memory from the system, 2 MiB aligned and backed by huge pages where the kernel
/// allows it. An arena of 0 bytes has an address too, for values without elements. Throws
/// OutOfMemory when the system refuses.
class Arena {
 public:
  Arena() = default;
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }
  int64_t touched() const;  ///< bytes of resident pages

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace fluid
