#include "executor/arena.h"

#include <sys/mman.h>

#include <string>
#include <utility>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

Arena::Arena(int64_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  mapped_ = static_cast<size_t>(bytes) + kHugePage;
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    throw DeviceError("the system has no " + std::to_string(bytes) + " bytes of memory to give");
  }
  const auto start = reinterpret_cast<uintptr_t>(mapping_);
  const uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  data_ = reinterpret_cast<std::byte*>(aligned);
  // A hint: whatever the kernel answers, the memory is there.
  if (static_cast<size_t>(bytes) >= kHugePage) madvise(data_, size_t(bytes), MADV_HUGEPAGE);
}

Arena::~Arena() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

}  // namespace fluid
