#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.h"

namespace fluid {

/// Symbolic address of a buffer of a step; address_of() resolves it once memory is bound.
struct BufferRef {
  Region region = Region::transient;
  int64_t offset = 0;    ///< bytes from the region's start; unused in the state region
  std::string variable;  ///< name of the variable, in the state region
  /// If >= 0: index of the kernel's first error word; the buffer lies in no region.
  int error_word = -1;
  bool constants = false;  ///< the buffer is the kernel's constant table and lies in no region
};

BufferRef buffer_of(const MemoryPlan& plan, const Value& value);
/// The buffers of the operands of `op`, then of its results.
std::vector<BufferRef> buffers_of(const MemoryPlan& plan, ir::Op& op);
/// Whether a result of `op` lies in the state region. `buffers`: buffers_of(op).
bool updates_variables(const ir::Op& op, const std::vector<BufferRef>& buffers);

/// Offset of the workspace of `op` in the transient region; 0 when `bytes` is 0. Throws
/// InternalError when fewer than `bytes` are planned.
int64_t workspace_of(const MemoryPlan& plan, const ir::Op& op, int64_t bytes);

/// The copy that a store op needs at run time.
struct StoreCopy {
  BufferRef from, to;
  int64_t bytes = 0;
  bool updates = false;  ///< the destination is a variable
};
/// Nothing when the operand was already computed at its destination.
std::optional<StoreCopy> copy_of_store(const MemoryPlan& plan, const ir::Op& store, int64_t batch);

std::byte* address_of(const BufferRef& buffer, const Memory& memory, const Variables& variables,
                      Slots slots);

}  // namespace fluid
