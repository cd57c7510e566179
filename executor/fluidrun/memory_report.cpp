#include "executor/fluidrun/memory_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/device/bytes_text.h"
#include "executor/fluidrun/print_to.h"

namespace fluid {
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
