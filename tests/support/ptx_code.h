#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fluid::testing {

struct PtxThread;
struct PtxInstruction;
using PtxRun = void (*)(PtxThread&, const PtxInstruction&);

/// A register by its number, or a value by its bits.
struct PtxOperand {
  bool is_register = false;
  uint32_t number = 0;
  uint64_t bits = 0;
};

/// Registers that every thread has: a sink for unused results, and the thread and block indices.
enum PtxRegister : uint32_t {
  kPtxNowhere,
  kPtxThread,
  kPtxThreads,
  kPtxGroup,
  kPtxGroups,
  kPtxOwn
};

struct PtxInstruction {
  PtxRun run = nullptr;
  uint32_t guard = 0;    ///< 0: none
  bool negated = false;  ///< runs where the guard is false
  uint8_t count = 1;     ///< elements that a load or store moves, or parts of a register
  bool joins = false;    ///< the parts are read, not written
  std::array<PtxOperand, 4> to, from;
  int64_t offset = 0;           ///< offset of an address, in bytes
  uint32_t target = 0;          ///< the instruction to jump to
  std::vector<uint32_t> table;  ///< or one of these
};

struct PtxEntry {
  std::vector<PtxInstruction> code;
  uint32_t registers = kPtxOwn;
  int64_t shared_bytes = 0;
  int64_t threads = 0;  ///< threads per block that the kernel requires
  size_t arguments = 0;
};

/// Parsed PTX of the code generator. Throws InternalError for any unknown text.
struct PtxCode {
  explicit PtxCode(std::string_view text);
  PtxCode(const PtxCode&) = delete;

  std::map<std::string, PtxEntry, std::less<>> entries;
  std::map<std::string, std::vector<std::byte>, std::less<>> globals;
};

/// Returns the implementation of an instruction. `name`: the parts of its name: "ld", "global",
/// "v4", "b32".
PtxRun ptx_run(const std::vector<std::string_view>& name);

}  // namespace fluid::testing
