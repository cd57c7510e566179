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

/// Caches the scheduled kernels of `fused` ops. Bodies that differ only in names and locations
/// share one entry, across programs and batch sizes. Thread-safe.
class KernelMemo {
 public:
  /// The kernels of one body, run in order. A CPU uses exactly one.
  using Passes = std::vector<kir::Kernel>;
  using Schedule = std::function<Passes(const ir::Graph& body, const std::string& name)>;

  KernelMemo();  ///< schedules for the CPU
  explicit KernelMemo(Schedule schedule) : schedule_(std::move(schedule)) {}

  /// The kernels of the body of `fused`. The reference stays valid as long as the memo.
  const Passes& passes_of(const ir::Op& fused);
  const kir::Kernel& kernel_of(const ir::Op& fused) { return passes_of(fused).at(0); }
  int scheduled() const;  ///< number of distinct bodies scheduled so far

 private:
  Schedule schedule_;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const Passes>> passes_;  ///< by the text of the body
};

/// Offsets of a kernel's scratch buffers in its workspace, in buffer order, and the workspace's
/// size in bytes.
struct ScratchLayout {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};
ScratchLayout scratch_layout(const kir::Kernel& kernel, int64_t batch);

}  // namespace fluid
