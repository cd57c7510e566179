#pragma once

#include <cstddef>
#include <cstdint>

namespace fluid {

/// Zeroed host memory straight from the system, 2 MiB aligned and backed by huge pages where the
/// kernel allows it. One of no bytes has an address too, for values without elements. Throws
/// DeviceError when the system refuses.
class Arena {
 public:
  Arena() = default;
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }
  int64_t touched() const;  ///< bytes that the system has given memory for: used so far

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace fluid
