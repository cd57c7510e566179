#include "executor/fluidrun/memory_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "executor/device/bytes_text.h"
#include "executor/fluidrun/print_to.h"

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
  // Memory that was freed again, beyond what the steps will use.
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

namespace {

struct Held {
  const Executor& executor;
  const std::vector<const Reader*>& readers;
  const Resident& before;
  const Resident& opened;
};

std::string text_of(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string text_of_arena(const MemoryUse& use) {
  return fmt::format("arena {} ({} bytes)", text_of(use.total), use.total);
}

/// Lists the owners of 1 MiB and more.
std::string text_of(const Owners& owners) {
  std::vector<std::string> texts;
  for (const auto& [owner, bytes] : owners) {
    if (bytes >= kListedOwner) texts.push_back(owner + " " + text_of(bytes));
  }
  return texts.empty() ? "nothing of 1 MiB" : fmt::format("{}", fmt::join(texts, ", "));
}

/// Describes a place that has memory of its own, and the host beside it.
void describe_memories(const Held& t, const MemoryUse& there) {
  print_to(stderr, "memory of {}: {}; outside it {}\n", t.executor.place().str(),
           text_of_arena(there), text_of(there.outside));
  if (t.before.total == 0) return;
  const MemoryUse here{.total = there.pinned, .touched = there.pinned};
  Owners owners = owners_outside(here, t.before, t.opened, t.readers);
  owners.emplace_back("pinned for the GPU", there.pinned);
  print_to(stderr, "memory of the host: at the start {}; then {}\n", text_of(t.before.total),
           text_of(owners));
}

}  // namespace

void describe_memory(const Executor& executor, const std::vector<const Reader*>& readers,
                     const Resident& before, const Resident& opened) {
  const Held t{executor, readers, before, opened};
  const MemoryUse arena = t.executor.memory();
  if (t.executor.place() != cpu()) return describe_memories(t, arena);
  if (t.before.total == 0) return print_to(stderr, "memory: {}\n", text_of_arena(arena));
  print_to(stderr, "memory: at the start {}; {}; outside it {}\n", text_of(t.before.total),
           text_of_arena(arena), text_of(owners_outside(arena, t.before, t.opened, t.readers)));
}

void describe_saving(const Executor& executor, const World& world) {
  const bool in_place = executor.place() == cpu() && world.size == 1;
  const int64_t copied = in_place ? ByteSource::kPiece : executor.memory().state;
  print_to(stderr, "saving and loading take {} of memory besides\n", text_of(copied));
}

}  // namespace fluid
