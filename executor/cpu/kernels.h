#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/kernel_ir.h"
#include "ir/graph.h"

namespace fluid {

/// The generated kernels of `fused` ops. Bodies that differ in nothing but names and locations
/// share a kernel, whatever their program and batch: it is scheduled once. Thread-safe.
class KernelMemo {
 public:
  /// The kernel lives as long as the memo.
  const kir::Kernel& kernel_of(const ir::Op& fused);
  int scheduled() const;  ///< kernels so far

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const kir::Kernel>> kernels_;  ///< by the body's content
};

/// Offsets of a kernel's scratch buffers in its workspace, in the order of the kernel's buffers,
/// and the bytes of the whole.
struct ScratchLayout {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};
ScratchLayout scratch_layout(const kir::Kernel& kernel, int64_t batch);

}  // namespace fluid
