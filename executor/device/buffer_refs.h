#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.h"

namespace fluid {

/// A buffer of a step before it is bound to memory.
struct BufferRef {
  Region region = Region::transient;
  int64_t offset = 0;      ///< in its region; unused for state
  std::string variable;    ///< of a buffer in the state region
  int error_word = -1;     ///< when >= 0: the buffer is the error words from here on, in no region
  bool constants = false;  ///< the buffer is the kernel's constants, in no region
};

BufferRef buffer_of(const MemoryPlan& plan, const Value& value);
/// Of an op's operands, then of its results.
std::vector<BufferRef> buffers_of(const MemoryPlan& plan, ir::Op& op);
/// Whether one of an op's results is a variable; `buffers` are the op's.
bool updates_variables(const ir::Op& op, const std::vector<BufferRef>& buffers);

/// Where the workspace of `op` is, which must have room for `bytes`.
int64_t workspace_of(const MemoryPlan& plan, const ir::Op& op, int64_t bytes);

/// What a store has to copy; nothing where its operand was computed in its place.
struct StoreCopy {
  BufferRef from, to;
  int64_t bytes = 0;
  bool updates = false;  ///< a variable
};
std::optional<StoreCopy> copy_of_store(const MemoryPlan& plan, const ir::Op& store, int64_t batch);

std::byte* address_of(const BufferRef& buffer, const Memory& memory, const Variables& variables,
                      Slots slots);

}  // namespace fluid
