#pragma once

#include <array>
#include <map>
#include <vector>

#include "ops/scan.h"
#include "passes/memory_plan.h"

namespace fluid {

/// Alignment in bytes that GPU kernels require for the elements of a scan's sequences. If the
/// element size is not a multiple of this alignment, a step uses aligned copies of the elements.
inline constexpr int64_t kElementAlign = 16;

/// Memory of a scan whose body is compiled. The workspace of the scan contains the transient values
/// of a step, two buffers per carry, and copies of sequence elements. A step reads one buffer of
/// each carry and writes the other.
struct ScanPlan {
  ScanPlan(const ir::Op& scan, const Options& options);

  ScanParts parts;
  MemoryPlan body;  ///< plan of a step; its transient region begins at offset 0 of the workspace
  /// Offsets of the two buffers of each carry in the workspace. The first step reads the initial
  /// carry directly, and the last step writes directly to the result of the scan.
  std::vector<std::array<int64_t, 2>> carries;
  /// For sequences with unaligned elements: operand or result index -> offset of the element copy
  /// in the workspace.
  std::map<size_t, int64_t> operand_copies, result_copies;
  int64_t bytes = 0;  ///< size of the workspace
};

}  // namespace fluid
