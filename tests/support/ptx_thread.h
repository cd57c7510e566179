#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tests/support/ptx_code.h"
#include "tests/support/ptx_machine.h"
#include "tests/support/ptx_races.h"

namespace fluid::testing {

inline constexpr uint32_t kPtxWarp = 32;  ///< threads

/// State shared by the threads of a launch.
struct PtxLaunch {
  const PtxEntry* entry = nullptr;
  std::span<const uint64_t> arguments;
  const PtxMachine::FindBlock* find = nullptr;
  std::vector<PtxBlock> globals;
  std::vector<std::byte> shared;  ///< shared memory of the running block
  std::array<PtxBlock, 8> known;  ///< cache of recently found memory blocks
  size_t next = 0;
  PtxRaces* races = nullptr;  ///< null: no race detection
};

struct PtxThread {
  enum class State : uint8_t { running, with_warp, with_group, done };
  State state = State::running;
  uint32_t at = 0;     ///< the next instruction
  uint32_t mask = 0;   ///< threads of the warp that it waits for
  uint32_t given = 0;  ///< what it lets them have,
  uint32_t shuffle_source =
      0;  ///< whose it takes (in its warp), and where to: kPtxNowhere for nothing
  uint32_t shuffle_target = kPtxNowhere;
  uint32_t group_waits = 0, warp_waits = 0;  ///< barriers that it passed
  uint32_t warp_mates = 0;                   ///< threads of its warp that passed the last barrier
  uint64_t* registers = nullptr;
  PtxLaunch* launch = nullptr;
};

}  // namespace fluid::testing
