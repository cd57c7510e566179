#include "executor/fluidrun/resident.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace fluid {
namespace {

/// The bytes that /proc/self/status gives for `key`, in kB there.
int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == key && status >> kib) return kib * 1024;
  }
  return 0;
}

int64_t& place_of(Resident& resident, const std::string& permissions, const std::string& path) {
  if (path.starts_with('/')) return resident.files[path.substr(path.rfind('/') + 1)];
  return permissions.find('x') != std::string::npos ? resident.made_code : resident.other;
}

}  // namespace

Resident resident_now() {
  Resident now;
  std::ifstream smaps("/proc/self/smaps");
  int64_t* place = &now.other;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string first, second, offset, device, inode, path;
    words >> first >> second;
    if (first == "Rss:") {
      const int64_t bytes = std::stoll(second) * 1024;
      *place += bytes;
      now.total += bytes;
    } else if (!first.ends_with(':')) {  // a new mapping: addresses, permissions, ...
      words >> offset >> device >> inode >> path;
      place = &place_of(now, second, path);
    }
  }
  now.peak = std::max(now.total, status_bytes("VmHWM:"));
  return now;
}

Owners owners_outside(const MemoryUse& arena, const Resident& before, const Resident& opened,
                      const std::vector<const Reader*>& readers) {
  const Resident now = resident_now();
  int64_t data = 0, buffers = 0;
  for (const Reader* reader : readers) {
    data += reader->dataset().bytes();
    buffers += reader->buffer_bytes();
  }
  // What the process held for a while and gave back, above what it will hold when it runs.
  const int64_t to_come = arena.total - arena.touched + buffers;
  const int64_t given_back = std::max<int64_t>(0, now.peak - now.total - to_come);
  const bool by_reading = now.peak == opened.peak;
  Owners owners = {
      {"data", data},
      {"reading the data", by_reading ? given_back : 0},
      {"batches", buffers},
      {"compiled kernels", now.made_code - before.made_code},
      {"passes, LLVM, library primitives",
       now.other - before.other - data - arena.touched + (by_reading ? 0 : given_back)}};
  for (const auto& [name, bytes] : now.files) {
    const auto earlier = before.files.find(name);
    owners.emplace_back("code of " + name,
                        bytes - (earlier != before.files.end() ? earlier->second : 0));
  }
  std::erase_if(owners, [](const auto& owner) { return owner.second < kListedOwner; });
  std::ranges::stable_sort(owners, std::ranges::greater(), &Owners::value_type::second);
  return owners;
}

}  // namespace fluid
