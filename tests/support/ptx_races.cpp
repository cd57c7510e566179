#include "tests/support/ptx_races.h"

#include <fmt/format.h>

#include "ir/error.h"
#include "tests/support/ptx_thread.h"

namespace fluid::testing {
namespace {

uint32_t number_of(const PtxThread& t) { return static_cast<uint32_t>(t.registers[kPtxThread]); }
uint32_t group_of(const PtxThread& t) { return static_cast<uint32_t>(t.registers[kPtxGroup]); }

}  // namespace

PtxRaces::Touch PtxRaces::touch_of(const PtxThread& t) {
  return {true, group_of(t), number_of(t), t.group_waits, t.warp_waits};
}

bool PtxRaces::is_before(const Touch& touch, const PtxThread& t) {
  if (!touch.made) return true;
  if (touch.group != group_of(t)) return false;
  if (touch.number == number_of(t) || touch.group_waits < t.group_waits) return true;
  const bool in_warp = touch.number / kPtxWarp == number_of(t) / kPtxWarp;
  const bool waited = (t.warp_mates >> touch.number % kPtxWarp & 1) != 0;
  return in_warp && waited && touch.warp_waits < t.warp_waits;
}

void PtxRaces::require_order(const Touch& touch, const PtxThread& t, const char* what) {
  if (is_before(touch, t)) return;
  throw InternalError(
      fmt::format("thread {} of group {} {} thread {} of group {} may do at the same time",
                  number_of(t), group_of(t), what, touch.number, touch.group));
}

template <class Visit>
void PtxRaces::for_each_byte(const std::byte* at, size_t bytes, Visit visit) {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  Line* line = nullptr;
  for (uintptr_t i = begin; i < begin + bytes; ++i) {
    if (line == nullptr || i % kLine == 0) line = &lines_[i / kLine];
    visit((*line)[i % kLine], at[i - begin]);
  }
}

void PtxRaces::read(const PtxThread& t, const std::byte* at, size_t bytes) {
  const Touch touch = touch_of(t);
  for_each_byte(at, bytes, [&](Byte& byte, std::byte) {
    require_order(byte.writer, t, "reads what to write");
    auto& [last, before] = byte.readers;
    if (last.group != touch.group || last.number != touch.number) before = last;
    last = touch;
  });
}

void PtxRaces::written(const PtxThread& t, const std::byte* at, size_t bytes) {
  const Touch touch = touch_of(t);
  for_each_byte(at, bytes, [&](Byte& byte, std::byte now) {
    if (byte.holds != now) require_order(byte.writer, t, "writes what to write");
    for (const Touch& reader : byte.readers) require_order(reader, t, "writes what to read");
    byte = {.writer = touch, .readers = {}, .holds = now};
  });
}

void PtxRaces::forget(std::span<const std::byte> memory) {
  for_each_byte(memory.data(), memory.size(), [](Byte& byte, std::byte) { byte = {}; });
}

}  // namespace fluid::testing
