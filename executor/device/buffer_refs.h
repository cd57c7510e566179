#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.h"

namespace fluid {

/// Symbolic address of a buffer of a step: a region and an offset, or a variable. address_of()
/// returns the actual address once memory is bound.
struct BufferRef {
  Region region = Region::transient;
  /// Bytes from the start of the region or, in the state region, of the variable.
  int64_t offset = 0;
  std::string variable;  ///< name of the variable; set only in the state region
  /// Index of the kernel's first error word if this is the buffer of error words, else -1. Error
  /// words are in no region.
  int error_word = -1;
  /// Whether the buffer is the kernel's constant table, which is in no region.
  bool constants = false;
};

BufferRef buffer_of(const MemoryPlan& plan, const Value& value);
/// A copy that a `store` op performs at run time.
struct StoreCopy {
  BufferRef from, to;
  int64_t bytes = 0;
  bool updates_variable = false;  ///< whether the destination is a variable
};
/// Returns the copy that `store` performs. Returns nullopt if the operand is computed in place at
/// the destination, so no copy is needed.
std::optional<StoreCopy> store_copy(const MemoryPlan& plan, const ir::Op& store, int64_t batch);

std::byte* address_of(const BufferRef& buffer, const MemoryAddresses& memory,
                      const Variables& variables, Slots slots);

}  // namespace fluid
