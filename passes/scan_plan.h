#pragma once

#include <array>
#include <map>
#include <vector>

#include "ops/scan.h"
#include "passes/memory_plan.h"

namespace fluid {

/// Alignment of the elements of a sequence in bytes. Kernels of a GPU need it. A step works on
/// copies of elements whose size is not a multiple of it.
inline constexpr int64_t kElementAlign = 16;

/// Memory of a scan whose body is compiled. The workspace of the scan holds the transient values of
/// a step, two buffers for each carry, because a step reads one while it writes the other, and the
/// copies of elements.
struct ScanPlan {
  ScanPlan(const ir::Op& scan, const Options& options);

  ScanParts parts;
  MemoryPlan body;  ///< plan of a step; its transient region begins at offset 0 of the workspace
  /// Offsets of the buffers of each carry in the workspace. The first step reads the initial carry
  /// instead, and the last step writes the result of the scan.
  std::vector<std::array<int64_t, 2>> carries;
  /// Operand or result that is a sequence with unaligned elements -> offset of the copy of an
  /// element in the workspace.
  std::map<size_t, int64_t> operand_copies, result_copies;
  int64_t bytes = 0;  ///< size of the workspace
};

}  // namespace fluid
