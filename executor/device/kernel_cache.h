#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/kernel_ir.h"

namespace fluid {

/// Caches the scheduled kernels of `fused` ops, across programs and batch sizes. Bodies that differ
/// only in names and locations share an entry. Thread-safe.
class KernelCache {
 public:
  /// The kernels that compute the body of one fused op, in execution order. On a CPU, this is
  /// always a single kernel.
  using Kernels = std::vector<kir::Kernel>;
  using Schedule = std::function<Kernels(const ir::Graph& body, const std::string& name)>;

  /// Creates a cache that schedules kernels for a CPU. `accumulators`: see cpu_accumulators().
  explicit KernelCache(int64_t accumulators);
  explicit KernelCache(Schedule schedule) : schedule_(std::move(schedule)) {}

  /// Returns the kernels of the body of `fused`. Schedules them on a cache miss. The reference is
  /// valid for the lifetime of the cache.
  const Kernels& kernels_of(const ir::Op& fused);
  const kir::Kernel& kernel_of(const ir::Op& fused) { return kernels_of(fused).at(0); }
  int size() const;  ///< number of cache entries

 private:
  Schedule schedule_;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const Kernels>> kernels_;  ///< content_of(body) -> kernels
};

/// Layout of a kernel's workspace: the byte offset of each scratch buffer, in buffer order, and the
/// total size in bytes.
struct ScratchLayout {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};
ScratchLayout scratch_layout(const kir::Kernel& kernel, int64_t batch);

}  // namespace fluid
