// PTX instructions for memory, control flow and synchronization.

#include <algorithm>

#include "ir/error.h"
#include "tests/support/ptx_values.h"

namespace fluid::testing {
namespace {

std::byte* address_in(const PtxThread& t, const PtxOperand& base, int64_t offset) {
  return reinterpret_cast<std::byte*>(bits_in(t, base) + static_cast<uint64_t>(offset));
}

/// How many bytes from an address on are the GPU's, in one block.
size_t reach(PtxLaunch& launch, const std::byte* address) {
  const auto holds = [&](const PtxBlock& b) { return b.begin <= address && address < b.end; };
  for (const std::span<const PtxBlock> blocks :
       {std::span<const PtxBlock>(launch.known), std::span<const PtxBlock>(launch.globals)}) {
    const auto known = std::ranges::find_if(blocks, holds);
    if (known != blocks.end()) return static_cast<size_t>(known->end - address);
  }
  const PtxBlock found = (*launch.find)(address);
  check(holds(found), "a kernel touches memory that is not the GPU's");
  launch.known[launch.next++ % launch.known.size()] = found;
  return static_cast<size_t>(found.end - address);
}

void require_aligned(uint64_t address, size_t bytes) {
  check(address % bytes == 0, "a kernel touches memory that is not at a multiple of its size");
}

/// An aligned vector load may extend past the end of a block, within its last 16 bytes. Those bytes
/// are junk.
std::array<std::byte, 16> read_global(PtxThread& t, const PtxInstruction& i, size_t bytes) {
  const std::byte* from = address_in(t, i.from[0], i.offset);
  require_aligned(reinterpret_cast<uintptr_t>(from), bytes);
  std::array<std::byte, 16> junk;
  junk.fill(std::byte{0xCD});
  const size_t known = std::min(bytes, reach(*t.launch, from));
  std::memcpy(junk.data(), from, known);
  if (t.launch->races != nullptr) t.launch->races->read(t, from, known);
  return junk;
}

std::byte* written_global(PtxThread& t, const PtxInstruction& i, size_t bytes) {
  std::byte* to = address_in(t, i.to[0], i.offset);
  require_aligned(reinterpret_cast<uintptr_t>(to), bytes);
  check(bytes <= reach(*t.launch, to), "a kernel writes over the end of the GPU's memory");
  return to;
}

std::byte* shared_at(PtxThread& t, const PtxOperand& base, int64_t offset, size_t bytes) {
  const uint64_t at = bits_in(t, base) + static_cast<uint64_t>(offset);
  require_aligned(at, bytes);
  check(at + bytes <= t.launch->shared.size(), "a kernel touches more than its group shares");
  return t.launch->shared.data() + at;
}

std::array<std::byte, 16> read_shared(PtxThread& t, const PtxInstruction& i, size_t bytes) {
  const std::byte* from = shared_at(t, i.from[0], i.offset, bytes);
  std::array<std::byte, 16> read;
  std::memcpy(read.data(), from, bytes);
  if (t.launch->races != nullptr) t.launch->races->read(t, from, bytes);
  return read;
}

std::byte* written_shared(PtxThread& t, const PtxInstruction& i, size_t bytes) {
  return shared_at(t, i.to[0], i.offset, bytes);
}

template <class T, auto kRead>
void load(PtxThread& t, const PtxInstruction& i) {
  const std::array<std::byte, 16> read = kRead(t, i, sizeof(T) * i.count);
  for (size_t n = 0; n < i.count; ++n) {
    T value;
    std::memcpy(static_cast<void*>(&value), read.data() + n * sizeof(T), sizeof(T));
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    if constexpr (Integer<T>) bits = static_cast<uint64_t>(value);  // its sign goes on
    t.registers[i.to.at(n).number] = bits;
  }
}

/// Stores elements. Atomic stores may run in any order.
template <class T, auto kWritten, bool kAtomic = false>
void store(PtxThread& t, const PtxInstruction& i) {
  std::byte* to = kWritten(t, i, sizeof(T) * i.count);
  for (size_t n = 0; n < i.count; ++n) {
    const uint64_t bits = bits_in(t, i.from.at(n));
    std::memcpy(to + n * sizeof(T), &bits, sizeof(T));
  }
  if (!kAtomic && t.launch->races != nullptr) t.launch->races->written(t, to, sizeof(T) * i.count);
}

void load_argument(PtxThread& t, const PtxInstruction& i) {
  const uint64_t at = (bits_in(t, i.from[0]) + static_cast<uint64_t>(i.offset)) / 8;
  check(at < t.launch->arguments.size(), "a kernel reads an argument that it was not given");
  t.registers[i.to[0].number] = t.launch->arguments[at];
}

PtxRun access(const PtxName& name) {
  const bool loads = name[0] == "ld";
  const auto in = [&](std::string_view space) {
    return std::ranges::find(name, space) != name.end();
  };
  if (loads && in("param")) return load_argument;
  const bool in_shared = in("shared"), atomic = in("relaxed");
  if (!in_shared && !in("global")) return nullptr;
  return typed(name.back(), [&]<class T>(T) -> PtxRun {
    if (loads) return in_shared ? load<T, read_shared> : load<T, read_global>;
    if (atomic) return in_shared ? nullptr : store<T, written_global, true>;
    return in_shared ? store<T, written_shared> : store<T, written_global>;
  });
}

void jump(PtxThread& t, const PtxInstruction& i) { t.at = i.target; }

void jump_by_table(PtxThread& t, const PtxInstruction& i) {
  t.at = i.table.at(get<uint32_t>(t, i.from[0]));
}

void end(PtxThread& t, const PtxInstruction&) { t.state = PtxThread::State::done; }

void wait_for_group(PtxThread& t, const PtxInstruction& i) {
  check(bits_in(t, i.from[0]) == 0, "a barrier other than the first");
  t.state = PtxThread::State::with_group;
}

void wait_for_warp(PtxThread& t, const PtxInstruction& i) {
  t.mask = get<uint32_t>(t, i.from[0]);
  t.shuffle_target = kPtxNowhere;
  t.state = PtxThread::State::with_warp;
}

void exchange(PtxThread& t, const PtxInstruction& i) {
  check(get<uint32_t>(t, i.from[2]) == 31, "an exchange of other than a whole warp");
  const auto lane = static_cast<uint32_t>(t.registers[kPtxThread] % 32);
  t.mask = get<uint32_t>(t, i.from[3]);
  check((t.mask >> lane & 1) != 0, "a thread exchanges without being one of those who do");
  t.given = get<uint32_t>(t, i.from[0]);
  t.shuffle_source = lane ^ get<uint32_t>(t, i.from[1]);
  t.shuffle_target = i.to[0].number;
  t.state = PtxThread::State::with_warp;
}

PtxRun control(const PtxName& name) {
  const std::string_view what = name[0];
  if (what == "ld" || what == "st") return access(name);
  if (what == "bra") return jump;
  if (what == "brx") return jump_by_table;
  if (what == "ret" || what == "exit") return end;
  if (what == "bar" && name[1] == "warp") return wait_for_warp;
  if (what == "bar" || what == "barrier") return wait_for_group;
  if (what == "shfl" && name[2] == "bfly") return exchange;
  return nullptr;
}

}  // namespace

PtxRun ptx_run(const PtxName& name) {
  if (const PtxRun run = control(name)) return run;
  if (const PtxRun run = ptx_bits(name)) return run;
  return ptx_arithmetic(name);
}

}  // namespace fluid::testing
