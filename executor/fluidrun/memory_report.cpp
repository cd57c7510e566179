#include "executor/fluidrun/memory_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "executor/device/bytes_text.h"
#include "executor/launcher/print_to.h"

namespace fluid {

namespace {

/// The value of `key` in /proc/self/status, in bytes; 0 if the key is missing.
int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == key && status >> kib) return kib * 1024;
  }
  return 0;
}

/// Returns the member of `resident` that counts the bytes of a mapping in /proc/self/smaps with the
/// given permissions and path.
int64_t& counter_of(ResidentMemory& resident, const std::string& permissions,
                    const std::string& path) {
  const bool in_arena = path.ends_with(".weights");  // see WeightCache
  if (path.starts_with('/') && !in_arena) return resident.files[path.substr(path.rfind('/') + 1)];
  return permissions.find('x') != std::string::npos ? resident.generated_code : resident.other;
}

}  // namespace

ResidentMemory resident_memory() {
  ResidentMemory now;
  std::ifstream smaps("/proc/self/smaps");
  int64_t* counter = &now.other;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string first, second, offset, device, inode, path;
    words >> first >> second;
    if (first == "Rss:") {
      const int64_t bytes = std::stoll(second) * 1024;
      *counter += bytes;
      now.total += bytes;
    } else if (!first.ends_with(':')) {  // a new mapping: addresses, permissions, ...
      words >> offset >> device >> inode >> path;
      counter = &counter_of(now, second, path);
    }
  }
  now.peak = std::max(now.total, status_bytes("VmHWM:"));
  return now;
}

MemoryBreakdown memory_outside_arena(const MemoryUse& arena, const ResidentMemory& before,
                                     const ResidentMemory& opened,
                                     const std::vector<const Reader*>& readers) {
  const ResidentMemory now = resident_memory();
  int64_t data = 0, buffers = 0;
  for (const Reader* reader : readers) {
    data += reader->source().resident_bytes();
    buffers += reader->buffer_bytes();
  }
  const int64_t untouched = arena.total - arena.resident_bytes + buffers;
  // Peak RSS minus the RSS that the steps will reach, which is the current RSS plus `untouched`.
  const int64_t freed = std::max<int64_t>(0, now.peak - now.total - untouched);
  const bool peak_at_reading = now.peak == opened.peak;
  MemoryBreakdown breakdown = {
      {"data", data},
      {"reading the data", peak_at_reading ? freed : 0},
      {"batches", buffers},
      {"compiled kernels", now.generated_code - before.generated_code},
      {"passes, LLVM, library primitives",
       now.other - before.other - data - arena.resident_bytes + (peak_at_reading ? 0 : freed)}};
  for (const auto& [name, bytes] : now.files) {
    const auto earlier = before.files.find(name);
    breakdown.emplace_back("code of " + name,
                           bytes - (earlier != before.files.end() ? earlier->second : 0));
  }
  std::erase_if(breakdown, [](const auto& entry) { return entry.second < kMinListedBytes; });
  std::ranges::stable_sort(breakdown, std::ranges::greater(), &MemoryBreakdown::value_type::second);
  return breakdown;
}

namespace {

/// Arguments of print_memory_report().
struct MemoryReport {
  const Executor& executor;
  const std::vector<const Reader*>& readers;
  const ResidentMemory& before;
  const ResidentMemory& opened;
};

std::string text_of(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string text_of_arena(const MemoryUse& use) {
  return fmt::format("arena {} ({} bytes)", text_of(use.total), use.total);
}

/// Formats the entries of at least 1 MiB: "data 8.0 MiB, batches 2.0 MiB".
std::string text_of(const MemoryBreakdown& breakdown) {
  std::vector<std::string> texts;
  for (const auto& [category, bytes] : breakdown) {
    if (bytes >= kMinListedBytes) texts.push_back(category + " " + text_of(bytes));
  }
  return texts.empty() ? "nothing of 1 MiB" : fmt::format("{}", fmt::join(texts, ", "));
}

/// Prints to stderr the memory of a GPU, then the memory of the host.
void print_device_and_host_memory(const MemoryReport& t, const MemoryUse& device) {
  print_to(stderr, "memory of {}: {}; outside it {}\n", t.executor.place().str(),
           text_of_arena(device), text_of(device.memory_outside_arenas));
  if (t.before.total == 0) return;
  const MemoryUse pinned{.total = device.pinned_bytes, .resident_bytes = device.pinned_bytes};
  MemoryBreakdown breakdown = memory_outside_arena(pinned, t.before, t.opened, t.readers);
  breakdown.emplace_back("pinned for the GPU", device.pinned_bytes);
  print_to(stderr, "memory of the host: at the start {}; then {}\n", text_of(t.before.total),
           text_of(breakdown));
}

}  // namespace

void print_memory_report(const Executor& executor, const std::vector<const Reader*>& readers,
                         const ResidentMemory& before, const ResidentMemory& opened) {
  const MemoryReport t{executor, readers, before, opened};
  const MemoryUse arena = t.executor.memory();
  if (t.executor.place() != cpu()) return print_device_and_host_memory(t, arena);
  if (t.before.total == 0) return print_to(stderr, "memory: {}\n", text_of_arena(arena));
  print_to(stderr, "memory: at the start {}; {}; outside it {}\n", text_of(t.before.total),
           text_of_arena(arena),
           text_of(memory_outside_arena(arena, t.before, t.opened, t.readers)));
}

void print_checkpoint_memory(const Executor& executor, const World& world) {
  const bool in_place = executor.place() == cpu() && world.size == 1;
  const int64_t copied = in_place ? ByteSource::kHashBufferBytes : executor.memory().state;
  print_to(stderr, "saving and loading take {} of memory besides\n", text_of(copied));
}

}  // namespace fluid
