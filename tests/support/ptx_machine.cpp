#include "tests/support/ptx_machine.h"

#include <algorithm>
#include <optional>

#include "ir/error.h"
#include "tests/support/ptx_thread.h"

namespace fluid::testing {
namespace {

using State = PtxThread::State;

void run_until_it_waits(PtxThread& t) {
  const std::vector<PtxInstruction>& code = t.launch->entry->code;
  while (t.state == State::running) {
    const PtxInstruction& i = code.at(t.at++);
    if (i.guard != 0 && (t.registers[i.guard] != 0) == i.negated) continue;
    i.run(t, i);
  }
}

/// Resumes the threads of a warp if all of them wait for each other. Returns whether any thread
/// resumed.
bool release_warp(std::span<PtxThread> warp) {
  bool moved = false;
  for (PtxThread& t : warp) {
    if (t.state != State::with_warp) continue;
    const uint32_t mask = t.mask;
    bool all = true;
    for (size_t i = 0; i < warp.size(); ++i) {
      const bool asked = (mask >> i & 1) != 0;
      all = all && (!asked || (warp[i].state == State::with_warp && warp[i].mask == mask &&
                               warp[i].at == t.at));
    }
    if (!all) continue;
    moved = true;
    for (size_t i = 0; i < warp.size(); ++i) {
      if ((mask >> i & 1) == 0) continue;
      warp[i].state = State::running;
      if (warp[i].shuffle_target == kPtxNowhere) {
        ++warp[i].warp_waits;
        warp[i].warp_mates = mask;
        continue;
      }
      check((mask >> warp[i].shuffle_source & 1) != 0,
            "a thread takes from one that gives nothing");
      warp[i].registers[warp[i].shuffle_target] = warp[warp[i].shuffle_source].given;
    }
  }
  return moved;
}

bool release_group(std::span<PtxThread> threads) {
  const auto waits = [](const PtxThread& t) { return t.state == State::with_group; };
  if (!std::ranges::all_of(threads, waits)) return false;
  for (PtxThread& t : threads) {
    t.state = State::running;
    ++t.group_waits;
  }
  return true;
}

void run_group(std::span<PtxThread> threads, bool backwards) {
  const auto is_done = [](const PtxThread& t) { return t.state == State::done; };
  while (!std::ranges::all_of(threads, is_done)) {
    for (size_t i = 0; i < threads.size(); ++i) {
      run_until_it_waits(threads[backwards ? threads.size() - 1 - i : i]);
    }
    bool moved = release_group(threads);
    for (size_t first = 0; first < threads.size(); first += kPtxWarp) {
      moved |=
          release_warp(threads.subspan(first, std::min<size_t>(kPtxWarp, threads.size() - first)));
    }
    check(moved || std::ranges::all_of(threads, is_done),
          "threads of a group wait for others that do not come");
  }
}

}  // namespace

struct PtxMachine::Impl {
  explicit Impl(std::string_view text) : code(text) {}
  PtxCode code;
};

PtxMachine::PtxMachine(std::string_view text) : impl_(std::make_unique<const Impl>(text)) {}
PtxMachine::~PtxMachine() = default;

std::vector<std::string> PtxMachine::entries() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : impl_->code.entries) names.push_back(name);
  return names;
}

void PtxMachine::run(std::string_view name, int64_t groups, int64_t threads,
                     std::span<const uint64_t> arguments, const FindBlock& find,
                     const Order& order) const {
  const auto found = impl_->code.entries.find(name);
  check(found != impl_->code.entries.end(), "PTX without the entry '" + std::string(name) + "'");
  const PtxEntry& entry = found->second;
  check(arguments.size() == entry.arguments, "a kernel is given another number of arguments");
  check(threads == entry.threads, "a kernel is launched with another number of threads");
  PtxLaunch launch{.entry = &entry, .arguments = arguments, .find = &find};
  std::optional<PtxRaces> races;
  if (order.must_be_given) launch.races = &races.emplace();
  for (const auto& [global, bytes] : impl_->code.globals) {
    launch.globals.push_back({bytes.data(), bytes.data() + bytes.size()});
  }
  const auto count = static_cast<size_t>(threads);
  std::vector<uint64_t> registers(count * entry.registers);
  std::vector<PtxThread> all(count);
  for (int64_t g = 0; g < groups; ++g) {
    launch.shared.assign(static_cast<size_t>(entry.shared_bytes), std::byte{0xCD});
    if (races) races->forget(launch.shared);
    for (size_t i = 0; i < count; ++i) {
      all[i] = {.registers = registers.data() + i * entry.registers, .launch = &launch};
      all[i].registers[kPtxThread] = i;
      all[i].registers[kPtxThreads] = count;
      all[i].registers[kPtxGroup] = static_cast<uint64_t>(g);
      all[i].registers[kPtxGroups] = static_cast<uint64_t>(groups);
    }
    run_group(all, order.backwards);
  }
}

}  // namespace fluid::testing
