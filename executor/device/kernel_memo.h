#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/kernel_ir.h"
#include "ir/graph.h"

namespace fluid {

/// The generated kernels of `fused` ops. Bodies that differ in nothing but names and locations
/// share them, whatever their program and batch: they are scheduled once. Thread-safe.
class KernelMemo {
 public:
  /// The kernels that run a body, one after the other; on a CPU it is one.
  using Passes = std::vector<kir::Kernel>;
  using Schedule = std::function<Passes(const ir::Graph& body, const std::string& name)>;

  KernelMemo();  ///< of the CPU's
  explicit KernelMemo(Schedule schedule) : schedule_(std::move(schedule)) {}

  /// They live as long as the memo.
  const Passes& passes_of(const ir::Op& fused);
  const kir::Kernel& kernel_of(const ir::Op& fused) { return passes_of(fused).at(0); }
  int scheduled() const;  ///< kernels so far

 private:
  Schedule schedule_;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const Passes>> passes_;  ///< by the body's content
};

/// Offsets of a kernel's scratch buffers in its workspace, in the order of the kernel's buffers,
/// and the bytes of the whole.
struct ScratchLayout {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};
ScratchLayout scratch_layout(const kir::Kernel& kernel, int64_t batch);

}  // namespace fluid
