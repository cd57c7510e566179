#pragma once

#include <memory>
#include <string>

#include "executor/device/kernel_memo.h"
#include "passes/target.h"

namespace fluid {

/// The description of a CPU for the cost model. Rates and bandwidths are per thread.
struct TargetDescription {
  std::string name = "cpu";
  int threads = 1;
  int vector_bits = 256;
  int64_t l2_bytes = 1 << 20;  ///< per core
  double gflops_f32 = 60;      ///< a multiply-add counts as two operations
  double memory_gbs = 12;      ///< read bandwidth of memory
  double cache_gbs = 60;       ///< read bandwidth of the caches
  bool bf16 = false;           ///< has bf16 dot products
};

/// Describes this machine as the operating system reports it. Rates follow from the vector width.
TargetDescription describe_host(int threads);
/// Converts a description to and from the JSON of `fluidrun devices --json`. Throws UserError
/// naming the file and the entry for an unknown, missing or malformed entry. The entry
/// kMachineEntry holds further information for people and is ignored.
inline constexpr const char* kMachineEntry = "machine";
std::string to_json(const TargetDescription& description);
TargetDescription target_from_json(const std::string& text, const std::string& file);

/// A CPU as the passes see it: this machine's, or one known by description only.
class CpuTarget : public Target {
 public:
  explicit CpuTarget(TargetDescription description) : cpu_(std::move(description)) {}
  std::string name() const override { return cpu_.name; }
  int threads() const override { return cpu_.threads; }
  /// Whether this process's libraries can make claims for the CPU. They know only the instruction
  /// set of this machine. If false, there are no claims.
  bool matches_host_isa() const;
  std::vector<Claim> claims(const ir::Op& op, const Chain& epilogue) const override;
  double generated_seconds(const ir::Op& op) const override;
  int64_t scratch(const ir::Op& fused, int64_t batch) const override;
  /// The kernels that scratch() scheduled, for reuse by compilation.
  KernelMemo& kernels() const { return *kernels_; }

 private:
  TargetDescription cpu_;
  std::unique_ptr<KernelMemo> kernels_ = std::make_unique<KernelMemo>();
};

}  // namespace fluid
