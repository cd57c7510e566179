#include "executor/host/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/out_of_memory.h"

namespace fluid {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

Arena::Arena(int64_t bytes) : size_(bytes) {
  mapped_ = static_cast<size_t>(bytes) + kHugePage;
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    throw OutOfMemory("the system has no " + std::to_string(bytes) + " bytes of memory to give");
  }
  const auto start = reinterpret_cast<uintptr_t>(mapping_);
  const uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  data_ = reinterpret_cast<std::byte*>(aligned);
  // madvise() is only a hint: the memory is valid even if the call fails.
  if (static_cast<size_t>(bytes) >= kHugePage) madvise(data_, size_t(bytes), MADV_HUGEPAGE);
}

int64_t Arena::resident_bytes() const {
  if (size_ == 0) return 0;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((static_cast<size_t>(size_) + page - 1) / page);
  if (mincore(data_, static_cast<size_t>(size_), pages.data()) != 0) return size_;
  const auto present = std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; });
  return static_cast<int64_t>(present) * static_cast<int64_t>(page);
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
