#include "executor/host/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "executor/device/out_of_memory.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPrefaultedAtOnce = 4 * kHugePage;
constexpr size_t kEntryBytes = sizeof(uint64_t);  ///< size of an entry of /proc/self/pagemap

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

/// Counts the pages that are present in the page table (Linux' /proc/PID/pagemap). mincore() would
/// count all pages of a mapped file that are in the page cache.
int64_t Arena::resident_bytes() const {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t first = reinterpret_cast<uintptr_t>(data_) / page;
  const size_t pages = (static_cast<size_t>(size_) + page - 1) / page;
  const int table = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (table < 0) return size_;
  std::array<uint64_t, 1024> entries;
  int64_t present = 0;
  size_t done = 0;
  while (done < pages) {
    const size_t wanted = std::min(entries.size(), pages - done);
    const ssize_t n = pread(table, entries.data(), wanted * kEntryBytes,
                            static_cast<off_t>((first + done) * kEntryBytes));
    if (n <= 0) break;
    const auto read = std::span(entries).first(static_cast<size_t>(n) / kEntryBytes);
    present += std::ranges::count_if(read, [](uint64_t e) { return e >> 62 != 0; });
    done += read.size();
  }
  close(table);
  return done < pages ? size_ : present * static_cast<int64_t>(page);
}

void Arena::prefault(int64_t begin, int64_t end) {
#ifdef MADV_POPULATE_WRITE
  if (std::filesystem::exists("/sys/devices/system/node/node1")) return;
  prefaulted_ = std::min(end, size_);
  const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  begin = std::min(begin, prefaulted_) / page * page;
  const auto work = [begin = data_ + begin, bytes = static_cast<size_t>(prefaulted_ - begin)](
                        const std::stop_token& stop) {
    for (size_t at = 0; at < bytes && !stop.stop_requested(); at += kPrefaultedAtOnce) {
      const size_t part = std::min(kPrefaultedAtOnce, bytes - at);
      if (madvise(begin + at, part, MADV_POPULATE_WRITE) != 0) return;  // Linux before 5.14
    }
  };
  try {
    prefaulting_ = std::jthread(work);
  } catch (const std::system_error&) {
    // Without another thread, the first use of each page does it.
  }
#endif
}

void Arena::stop_prefaulting() {
  prefaulting_.request_stop();
  if (prefaulting_.joinable()) prefaulting_.join();
}

bool Arena::map(const StateRange& range, const StateFile& file) {
  stop_prefaulting();  // it would copy the pages of the file
  return mmap(data_ + range.offset, static_cast<size_t>(range.bytes), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file.fd(), file.offset()) != MAP_FAILED;
}

void Arena::shrink(int64_t bytes) {
  check(bytes <= size_, "an arena cannot grow");
  if (prefaulted_ > bytes) stop_prefaulting();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* const base = static_cast<std::byte*>(mapping_);
  const size_t used = static_cast<size_t>(data_ - base) + static_cast<size_t>(bytes);
  const size_t kept = (used + page - 1) / page * page;
  if (kept < mapped_ && munmap(base + kept, mapped_ - kept) == 0) mapped_ = kept;
  size_ = bytes;
}

Arena::~Arena() {
  stop_prefaulting();
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(prefaulted_, other.prefaulted_);
  std::swap(prefaulting_, other.prefaulting_);
  return *this;
}

}  // namespace fluid
