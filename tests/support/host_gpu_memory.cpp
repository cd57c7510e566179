#include "tests/support/host_gpu_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace fluid::testing {
namespace {

constexpr int64_t kPage = 4096;
constexpr int kJunk = 0xCD;  ///< contents of fresh memory

/// Whole pages, of which a GPU's block has one even if it has no byte.
int64_t pages(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + kPage - 1) / kPage * kPage; }

std::byte* mapped(int64_t bytes) {
  void* address = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

void unmap(std::byte* address, int64_t bytes) {
  munmap(address, static_cast<size_t>(pages(bytes)));
}

}  // namespace

HostGpuMemory::~HostGpuMemory() {
  for (const Blocks* blocks : {&gpu_, &host_}) {
    for (const auto& [address, bytes] : *blocks) unmap(address, bytes);
  }
}

void* HostGpuMemory::allocate(int64_t bytes) {
  if (pages(bytes) > free()) return nullptr;
  std::byte* address = mapped(pages(bytes));
  if (address == nullptr) return nullptr;
  std::memset(address, kJunk, static_cast<size_t>(bytes));
  mprotect(address, static_cast<size_t>(pages(bytes)), PROT_NONE);
  gpu_[address] = bytes;
  taken_ += pages(bytes);
  return address;
}

void* HostGpuMemory::allocate_host(int64_t bytes) {
  std::byte* address = mapped(pages(bytes));
  if (address != nullptr) host_[address] = bytes;
  return address;
}

bool HostGpuMemory::release(void* address) {
  const auto found = gpu_.find(static_cast<std::byte*>(address));
  if (found == gpu_.end()) return false;
  taken_ -= pages(found->second);
  unmap(found->first, found->second);
  gpu_.erase(found);
  return true;
}

bool HostGpuMemory::release_host(void* address) {
  const auto found = host_.find(static_cast<std::byte*>(address));
  if (found == host_.end()) return false;
  unmap(found->first, found->second);
  host_.erase(found);
  return true;
}

bool HostGpuMemory::holds(const Blocks& blocks, const void* address, int64_t bytes) {
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(address));
  const auto after = blocks.upper_bound(begin);
  if (after == blocks.begin()) return false;
  const auto& [block, size] = *std::prev(after);
  return begin - block + bytes <= size;
}

bool HostGpuMemory::contains(const void* address, int64_t bytes) const {
  return holds(gpu_, address, bytes) || holds(host_, address, bytes);
}

bool HostGpuMemory::is_within(const void* address, const void* block) const {
  for (const Blocks* blocks : {&gpu_, &host_}) {
    const auto found = blocks->find(static_cast<std::byte*>(const_cast<void*>(block)));
    if (found == blocks->end()) continue;
    const auto offset = static_cast<const std::byte*>(address) - found->first;
    return offset >= 0 && offset < found->second;
  }
  return false;
}

std::pair<const std::byte*, const std::byte*> HostGpuMemory::block_of(const void* address) const {
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(address));
  const auto after = gpu_.upper_bound(begin);
  if (after == gpu_.begin()) return {};
  const auto& [block, size] = *std::prev(after);
  if (begin - block >= size) return {};
  return {block, block + size};
}

void HostGpuMemory::protect(int rights) const {
  for (const auto& [address, bytes] : gpu_) {
    mprotect(address, static_cast<size_t>(pages(bytes)), rights);
  }
}

HostGpuMemory::Opened::Opened(HostGpuMemory& memory) : memory_(memory) {
  memory_.protect(PROT_READ | PROT_WRITE);
}

HostGpuMemory::Opened::~Opened() { memory_.protect(PROT_NONE); }

}  // namespace fluid::testing
